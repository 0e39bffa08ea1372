package topo

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// guess looks, where nobody says which nodes exist, for what a slip of the hand leaves behind: numbers that a series of
// names leaves out, and a few names that would fill the gap but lack a part of the series' prefix.
func (r *reader) guess() {
	type series struct {
		prefix string
		width  int
		have   map[int64]*vertex
		lo, hi int64
	}
	byKey := map[string]*series{}
	var all []*series
	for _, v := range r.all {
		for _, n := range v.nodes {
			prefix, number, width := numbered(n)
			if width == 0 {
				continue
			}
			key := prefix + "/" + strconv.Itoa(width)
			s := byKey[key]
			if s == nil {
				s = &series{prefix: prefix, width: width, have: map[int64]*vertex{}, lo: number, hi: number}
				byKey[key], all = s, append(all, s)
			}
			s.have[number], s.lo, s.hi = v, min(s.lo, number), max(s.hi, number)
		}
	}
	slices.SortStableFunc(all, func(a, b *series) int { return cmp.Compare(len(b.have), len(a.have)) })
	for _, s := range all {
		holes := s.hi - s.lo + 1 - int64(len(s.have))
		// A series that is mostly holes is no series: racks and rows make such numbers.
		if holes == 0 || holes > int64(len(s.have))/4 {
			continue
		}
		var gone []string
		for n := s.lo; n <= s.hi; n++ {
			if s.have[n] == nil {
				gone = append(gone, s.prefix+pad(n, s.width))
			}
		}
		r.oddf(0, "on no switch: %s, while %s to %s are", hostlist.Compress(gone), s.prefix+pad(s.lo, s.width), s.prefix+pad(s.hi, s.width))
		for i := range s.prefix {
			o := byKey[s.prefix[i+1:]+"/"+strconv.Itoa(s.width)]
			if o == nil || len(o.have) >= len(s.have) {
				continue
			}
			var at *vertex
			var odd []string
			for n, v := range o.have {
				if n >= s.lo && n <= s.hi && s.have[n] == nil {
					odd = append(odd, o.prefix+pad(n, o.width))
					if at == nil || v.at < at.at {
						at = v
					}
				}
			}
			if len(odd) > 0 {
				r.oddf(at.at, "%s: a lost prefix? %s would be %s with it", at.name, hostlist.Compress(odd), s.prefix+strings.TrimPrefix(hostlist.Compress(odd), o.prefix))
			}
		}
	}
}

// numbered cuts a name before its last number; width 0: it does not end in one.
func numbered(name string) (prefix string, number int64, width int) {
	i := len(name)
	for i > 0 && len(name)-i < 9 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	if i == len(name) {
		return name, 0, 0
	}
	number, _ = strconv.ParseInt(name[i:], 10, 64) // at most 9 digits: cannot fail
	return name[:i], number, len(name) - i
}

func pad(n int64, width int) string {
	s := strconv.FormatInt(n, 10)
	return strings.Repeat("0", max(0, width-len(s))) + s
}
