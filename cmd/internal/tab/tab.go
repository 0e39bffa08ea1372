// Package tab picks what a shell may offer at a Tab. A word on offer is NAME, or NAME, a tab and a few words on it.
package tab

import (
	"slices"
	"strings"
)

// Rest is what of offered may follow what has been typed: neither named before, nor earlier in the list, its items set
// apart by commas, that word may be the end of.
func Rest(offered, before []string, word string) []string {
	head := ""
	if i := strings.LastIndexByte(word, ','); i >= 0 {
		head = word[:i+1]
		before = append(slices.Clone(before), strings.Split(word[:i], ",")...)
	}
	var out []string
	for _, o := range offered {
		if name, _, _ := strings.Cut(o, "\t"); !slices.Contains(before, name) {
			out = append(out, head+o)
		}
	}
	return Begin(out, word)
}

// Begin is what of offered begins with word.
func Begin(offered []string, word string) (out []string) {
	for _, o := range offered {
		if strings.HasPrefix(o, word) {
			out = append(out, o)
		}
	}
	return out
}
