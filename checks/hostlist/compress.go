package hostlist

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Compress writes names in Slurm's short form: sorted, runs of numbers grouped in one bracket per prefix, zeros and
// duplicates kept. Only the number at the end of a name is grouped, which every Slurm release can read back.
// Expand(Compress(x)) is x sorted as Sort does it.
func Compress(names []string) string {
	parts := make([]part, len(names))
	for i, n := range names {
		parts[i] = split(n)
	}
	slices.SortFunc(parts, compare)

	var b strings.Builder
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[0].width > 0 && parts[n].width > 0 && parts[n].prefix == parts[0].prefix && n < MaxRange {
			n++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(parts[0].prefix)
		switch {
		case n > 1:
			b.WriteByte('[')
			ranges(&b, parts[:n])
			b.WriteByte(']')
		case parts[0].width > 0:
			b.WriteString(pad(parts[0].number, parts[0].width))
		}
		parts = parts[n:]
	}
	return b.String()
}

// Sort orders names as people count: gpu2 before gpu10. Equal numbers go by their zeros, fewest first.
func Sort(names []string) {
	slices.SortFunc(names, func(a, b string) int { return compare(split(a), split(b)) })
}

// ranges writes one prefix's numbers: 001-003,007. A range keeps the width of its first number, so 9-10 and 01-03 join
// and 9,010 does not.
func ranges(b *strings.Builder, ps []part) {
	for i := 0; i < len(ps); {
		j := i
		for j+1 < len(ps) && ps[j+1].number == ps[j].number+1 && ps[j+1].width == max(ps[i].width, len(strconv.FormatInt(ps[j+1].number, 10))) {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(pad(ps[i].number, ps[i].width))
		if j > i {
			b.WriteByte('-')
			b.WriteString(pad(ps[j].number, ps[j].width))
		}
		i = j + 1
	}
}

// A part is a name cut before its last number. Width 0: it does not end in one.
type part struct {
	prefix string
	number int64
	width  int
}

func split(name string) part {
	i := len(name)
	for i > 0 && len(name)-i < maxDigit && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	if i == len(name) {
		return part{prefix: name}
	}
	n, _ := strconv.ParseInt(name[i:], 10, 64) // at most 18 digits: cannot fail
	return part{prefix: name[:i], number: n, width: len(name) - i}
}

// compare orders by prefix, then a name without a number before those with one, then number, then width.
func compare(a, b part) int {
	return cmp.Or(cmp.Compare(a.prefix, b.prefix), cmp.Compare(min(a.width, 1), min(b.width, 1)),
		cmp.Compare(a.number, b.number), cmp.Compare(a.width, b.width))
}
