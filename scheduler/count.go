package scheduler

import "math/bits"

// A bin is phase two of Place: what one leaf, or one higher switch that segments must lie under, has for the gang.
type bin struct {
	cap    int  // lumps it can hold
	nodes  int  // nodes under it that pass
	broken bool // it is wholly free, and would not be any more
}

// leaf counts what leaf l has, in units.
func (a *ask) leaf(l int32) bin {
	s := a.s
	var b bin
	if a.unit == 1 {
		for ci, end := s.lay.leaf[l], s.lay.leaf[l+1]; ci < end; ci++ {
			b.nodes += bits.OnesCount64(a.passes(ci))
		}
		b.cap = b.nodes
	} else if a.atMost(l) >= a.unit {
		for _, p := range s.lay.parts[s.lay.part[l]:s.lay.part[l+1]] {
			n := a.in(p.lo, p.hi)
			b.nodes += n
			b.cap += n / a.unit
		}
	}
	if a.g.PerLeaf > 0 {
		b.cap = min(b.cap, a.g.PerLeaf/a.unit)
	}
	b.broken = s.idle[l] == s.full[l]
	return b
}

// bin counts what the bin that starts at leaf l has, in lumps, and says where the next one starts.
func (a *ask) bin(l int32) (b bin, next int32) {
	if a.height == 0 {
		b = a.leaf(l)
		if a.lump != a.unit {
			b.cap = b.cap * a.unit / a.lump
		}
		return b, l + 1
	}
	sw := &a.s.lay.tree.Switches[a.s.lay.tree.Up(l, a.height)]
	b.broken = true
	for l := sw.LeafLo; l < sw.LeafHi; l++ {
		x := a.leaf(l)
		b.cap, b.nodes, b.broken = b.cap+x.cap, b.nodes+x.nodes, b.broken && x.broken
	}
	b.cap = b.cap * a.unit / a.lump
	return b, sw.LeafHi
}

// atMost is how many nodes below switch sw could pass at most: what the kept counts say without looking at any node.
func (a *ask) atMost(sw int32) int {
	if a.row() >= a.s.stride {
		return 0
	}
	return int(a.s.counts[int(sw)*a.s.stride+a.row()])
}
