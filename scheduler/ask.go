package scheduler

import (
	"math/bits"

	"github.com/assay-gpu/assay/checks"
)

// An ask is phase one of Place: a gang turned into tests of one node, and into units that are placed whole. Fits asks the
// same. A unit is one node, or the nodes of an NVLink group; a bin is what holds units: a leaf, or with segments higher
// than a leaf the switch that each must lie under; what a bin holds is counted in lumps of the largest slice.
type ask struct {
	g *Gang
	s *Snapshot

	k       int // GPUs a node must have usable
	whole   bool
	level   checks.Level
	until   int64 // its certificate holds then
	since   int64 // and was issued no earlier; 0: whenever
	with    []*NodeSet
	without []*NodeSet

	shared bool // a part must come from a GPU that is shared already

	unit   int // nodes that share an NVLink domain
	lump   int // nodes that are counted together in a bin: a segment, or a unit
	need   int // lumps
	height int // of bins
	top    int // highest switch that may join the gang

	table table // tightest's, kept from choice to choice
}

// newAsk makes the tests. A gang that is not valid, that names a reservation which is not there, or sets of nodes made for
// another tree, is an error.
func newAsk(s *Snapshot, g *Gang) (*ask, error) {
	if err := g.Valid(); err != nil {
		return nil, err
	}
	a := &ask{g: g, s: s, k: g.GPUs, whole: g.Whole || g.GPUs == 0 && g.Share.Kind == NoShare, level: g.level(), with: g.Within, without: g.Except}
	a.until = s.now + Seconds(g.remaining())
	if g.MaxAge > 0 {
		a.since = s.now - int64(g.MaxAge.Seconds())
	}
	a.unit = max(g.Group, 1)
	a.lump = max(g.Segment, a.unit)
	a.need = g.Nodes / a.lump
	a.top = s.lay.tree.Heights() - 1
	if g.Near == Required {
		a.top = min(a.top, g.Height)
	}
	if g.Segment > 0 {
		a.height = min(g.SegmentHeight, a.top)
	}
	if err := a.reserve(); err != nil {
		return nil, err
	}
	for _, sets := range [][]*NodeSet{a.with, a.without} {
		for _, set := range sets {
			if set == nil || set.lay.tree != s.lay.tree {
				return nil, &GangError{g.ID, "nodes", "a set of nodes that was made for another topology"}
			}
		}
	}
	return a, nil
}

// joint is the ask for the whole gang under one switch no higher than its segments' own: there each segment lies under one
// too, however it is cut.
func (a *ask) joint() *ask {
	b := *a
	b.lump, b.need, b.height, b.top = a.unit, a.g.Nodes/a.unit, 0, a.height
	return &b
}

// reserve adds what reservations say: one that the gang names lets it on its nodes alone, any other keeps it off while
// their times meet.
func (a *ask) reserve() error {
	end := int64(never)
	if a.g.Limit > 0 {
		end = a.s.now + Seconds(a.g.Limit)
	}
	found := a.g.Reserved == ""
	for _, r := range a.s.reservations {
		last := int64(never)
		if !r.End.IsZero() {
			last = floor(r.End)
		}
		switch {
		case r.Name == a.g.Reserved:
			if r.Nobody {
				return &GangError{a.g.ID, "reserved", "reservation " + r.Name + " is for nobody"}
			}
			if floor(r.Start) > a.s.now || last < end {
				return &GangError{a.g.ID, "reserved", "reservation " + r.Name + " does not last from now to its limit"}
			}
			found = true
			a.with = append(a.with[:len(a.with):len(a.with)], r.Nodes)
		case floor(r.Start) < end && a.s.now < last:
			a.without = append(a.without[:len(a.without):len(a.without)], r.Nodes)
		}
	}
	if !found {
		return &GangError{a.g.ID, "reserved", "no reservation " + a.g.Reserved}
	}
	return nil
}

// row is the row of Snapshot.counts that no node of the gang is missing from: never fewer than pass.
func (a *ask) row() int { return a.k }

// passes is the nodes of cell ci that the gang could have, as bits.
func (a *ask) passes(ci int32) uint64 {
	b, k := a.s.block(ci)
	if a.k >= len(b.has) {
		return 0
	}
	w := b.has[a.k][k]
	if a.shared {
		w &= b.parts[k]
	}
	if a.whole {
		w &= b.whole[k]
	}
	if w == 0 {
		return 0
	}
	if w &= b.level[a.level][k]; b.first[k] < a.until {
		w &= b.validAt(k, a.until)
	}
	for _, set := range a.with {
		w &= set.words[ci]
	}
	for _, set := range a.without {
		w &^= set.words[ci]
	}
	if a.since != 0 || a.g.Joined > 1 || a.g.Share.Kind != NoShare {
		w = a.each(b.cells[k], w)
	}
	return w
}

// each applies the tests that look at nodes one by one.
func (a *ask) each(c *cell, w uint64) uint64 {
	for m := w; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		n := &c.nodes[i]
		if a.since != 0 && n.issued < a.since || a.g.Joined > 1 && a.gpus(n) == 0 || a.g.Share.Kind != NoShare && !a.fitsPart(n) {
			w &^= 1 << i
		}
	}
	return w
}

// in counts the nodes of lo ≤ i < hi that pass. The range lies under one leaf.
func (a *ask) in(lo, hi int32) int {
	n := 0
	for lo < hi {
		ci := a.s.lay.cell[lo]
		base, next := a.s.lay.first[ci], min(a.s.lay.first[ci+1], hi)
		w := a.passes(ci) >> (lo - base)
		if width := next - lo; width < cellNodes {
			w &= 1<<width - 1
		}
		n += bits.OnesCount64(w)
		lo = next
	}
	return n
}
