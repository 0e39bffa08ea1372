package scheduler

import (
	"math/bits"
	"slices"
)

// nodes is phase five of Place: the nodes in the bins that were picked, by index.
func (a *ask) nodes(p place) []Take {
	out := make([]Take, 0, a.g.Nodes)
	left := slices.Clone(p.picks)
	need := a.need
	for l := p.lo; l < p.hi && need > 0; {
		b, next := a.bin(l)
		if i := slices.IndexFunc(left, func(k pick) bool { return k.n > 0 && k.bin == b }); i >= 0 {
			left[i].n--
			lumps := min(b.cap, need)
			need -= lumps
			out = a.inBin(out, l, next, lumps)
		}
		l = next
	}
	return out
}

// inBin takes so many lumps from the bin of leaves lo ≤ l < hi. A bin above the leaves is filled as a gang's place is: the
// fewest leaves that hold it.
func (a *ask) inBin(out []Take, lo, hi int32, lumps int) []Take {
	units := lumps * a.lump / a.unit
	if a.height == 0 {
		return a.inLeaf(out, lo, units)
	}
	var kinds kinds
	for l := lo; l < hi; l++ {
		if b := a.leaf(l); b.cap > 0 {
			kinds.add(b)
		}
	}
	picks := kinds.choose(units, kinds.fewest(units), a.g.Spread, &a.table)
	for l := lo; l < hi && units > 0; l++ {
		b := a.leaf(l)
		if i := slices.IndexFunc(picks, func(k pick) bool { return k.n > 0 && k.bin == b }); i >= 0 {
			picks[i].n--
			n := min(b.cap, units)
			units -= n
			out = a.inLeaf(out, l, n)
		}
	}
	return out
}

// inLeaf takes so many units from leaf l: NVLink groups from the fewest domains, single nodes as takeNodes likes them.
func (a *ask) inLeaf(out []Take, l int32, units int) []Take {
	lay := a.s.lay
	sw := &lay.tree.Switches[l]
	if a.unit == 1 {
		return a.takeNodes(out, sw.Lo, sw.Hi, units)
	}
	parts := lay.parts[lay.part[l]:lay.part[l+1]]
	var kinds kinds
	count := func(p span) bin {
		n := a.in(p.lo, p.hi)
		return bin{cap: n / a.unit, nodes: n}
	}
	for _, p := range parts {
		if b := count(p); b.cap > 0 {
			kinds.add(b)
		}
	}
	picks := kinds.choose(units, kinds.fewest(units), a.g.Spread, &a.table)
	for _, p := range parts {
		b := count(p)
		if i := slices.IndexFunc(picks, func(k pick) bool { return k.n > 0 && k.bin == b }); i >= 0 && units > 0 {
			picks[i].n--
			n := min(b.cap, units)
			units -= n
			out = a.takeNodes(out, p.lo, p.hi, n*a.unit)
		}
	}
	return out
}

// takeNodes takes n of the nodes lo ≤ i < hi of one leaf: those that are left with the fewest usable GPUs, so that whole
// nodes stay whole, or the most for a gang that wants to be spread; of equals the lowest index. They come out by index.
func (a *ask) takeNodes(out []Take, lo, hi int32, n int) []Take {
	if a.g.Share.Kind != NoShare {
		out, _ = a.takeParts(out, lo, hi, n)
		return out
	}
	first := len(out)
	for i := range a.s.stride - a.k {
		k := a.k + i
		if a.g.Spread {
			k = a.s.stride - 1 - i
		}
		for at := lo; at < hi && n > 0; {
			ci := a.s.lay.cell[at]
			base := a.s.lay.first[ci]
			end := min(a.s.lay.first[ci+1], hi)
			w := a.passes(ci) & a.exactly(ci, k)
			w &= ^uint64(0) << (at - base)
			for ; w != 0 && n > 0; w &= w - 1 {
				if i := base + int32(bits.TrailingZeros64(w)); i < end {
					out = append(out, Take{Node: i})
					n--
				}
			}
			at = end
		}
		if n == 0 {
			break
		}
	}
	slices.SortFunc(out[first:], func(x, y Take) int { return int(x.Node - y.Node) })
	return out
}

// exactly is the nodes of cell ci with k usable GPUs.
func (a *ask) exactly(ci int32, k int) uint64 {
	b, at := a.s.block(ci)
	w := b.has[k][at]
	if k+1 < len(b.has) {
		w &^= b.has[k+1][at]
	}
	return w
}

// waste is how many GPUs stay usable on the nodes that takeNodes would take from leaf l.
func (a *ask) waste(l int32) int {
	if a.whole || a.unit > 1 {
		return 0
	}
	n, waste := a.g.Nodes, 0
	if a.g.Share.Kind != NoShare {
		sw := &a.s.lay.tree.Switches[l]
		_, waste = a.takeParts(nil, sw.Lo, sw.Hi, n)
		return waste
	}
	for i := range a.s.stride - a.k {
		k := a.k + i
		if a.g.Spread {
			k = a.s.stride - 1 - i
		}
		for ci := a.s.lay.leaf[l]; ci < a.s.lay.leaf[l+1] && n > 0; ci++ {
			m := min(n, bits.OnesCount64(a.passes(ci)&a.exactly(ci, k)))
			n -= m
			waste += m * (k - a.k)
		}
		if n == 0 {
			break
		}
	}
	return waste
}
