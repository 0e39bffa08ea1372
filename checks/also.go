package checks

import "strings"

// maxAlso bounds how many parts of one subject a finding names.
const maxAlso = 8

// Also has f, which stands for g too, name the part that g is of, if it does not yet.
func (f *Finding) Also(g Finding) {
	for of := range strings.SplitSeq(g.Of, "\n") {
		n := strings.Count(f.Of, "\n") + 1
		if of == "" || f.Of == "" || n > maxAlso || strings.Contains("\n"+f.Of+"\n", "\n"+of+"\n") {
			continue
		}
		f.Of += "\n" + of
		switch {
		case n == maxAlso:
			f.Reason += " and others"
		case n == 1:
			f.Reason += "; also " + of
		default:
			f.Reason += ", " + of
		}
	}
}
