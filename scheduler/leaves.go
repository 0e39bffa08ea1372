package scheduler

import (
	"cmp"
	"slices"
)

// A pick is phase four of Place: so many bins of one kind.
type pick struct {
	bin
	n int
}

// kinds counts bins by what they hold: most first, then fewest nodes, unbroken first. Bins of a kind are worth the same.
type kinds struct{ list []pick }

func compareBins(a, b bin) int {
	return cmp.Or(cmp.Compare(b.cap, a.cap), cmp.Compare(a.nodes, b.nodes), cmp.Compare(one(a.broken), one(b.broken)))
}

func (k *kinds) add(b bin) {
	i, found := slices.BinarySearchFunc(k.list, b, func(p pick, b bin) int { return compareBins(p.bin, b) })
	if found {
		k.list[i].n++
		return
	}
	k.list = slices.Insert(k.list, i, pick{b, 1})
}

// fewest is the least number of bins that hold need lumps, all together at least as many: the largest ones.
func (k *kinds) fewest(need int) int {
	n := 0
	for _, p := range k.list {
		if p.cap*p.n >= need {
			return n + (need+p.cap-1)/p.cap
		}
		n += p.n
		need -= p.cap * p.n
	}
	return n
}

// choose picks n bins, the fewest that hold need.
func (k *kinds) choose(need, n int, spread bool) []pick {
	var out []pick
	take := func(i, m int) {
		p := k.list[i]
		k.list[i].n -= m
		need -= m * p.cap
		n -= m
		out = append(out, pick{p.bin, m})
	}
	for i := range k.list {
		p := &k.list[i]
		m := min(p.n, n-1)
		for m > 0 && m*p.cap > need-1 {
			m--
		}
		if m > 0 {
			take(i, m)
		}
	}
	// The last bin: the tightest that holds the rest.
	for i := len(k.list) - 1; i >= 0 && n > 0; i-- {
		if p := &k.list[i]; p.n > 0 && p.cap >= need {
			take(i, 1)
		}
	}
	_ = spread
	return out
}

// smallest picks bins with the least room until they hold need; nil when all together do not.
func (k *kinds) smallest(need int) []pick {
	var out []pick
	for i := len(k.list) - 1; i >= 0 && need > 0; i-- {
		p := k.list[i]
		m := min(p.n, (need+p.cap-1)/p.cap)
		need -= m * p.cap
		out = append(out, pick{p.bin, m})
	}
	if need > 0 {
		return nil
	}
	return out
}
