package scheduler

import (
	"math"
)

// A place is phase three of Place: the switch to place under, and how many bins of each kind to take there.
type place struct {
	lo, hi int32 // leaves below it
	cost   Cost  // of a gang placed there; Leaves counts bins
	picks  []pick
}

// find goes up the heights and returns the best place at the lowest one that has any, or false.
func (a *ask) find() (place, bool) {
	t := a.s.lay.tree
	if a.g.Near == Anywhere {
		return a.anywhere()
	}
	top := t.Heights() - 1
	if a.g.Near == Required {
		top = min(top, a.g.Height)
	}
	for h := a.height; h <= top; h++ {
		best, found := place{cost: Cost{Leaves: math.MaxInt}}, false
		lo, hi := int32(0), int32(0)
		if h == a.height {
			// Bins themselves: every switch of this height, and lower ones that nothing joins below it.
			best, found = a.oneBin()
		} else {
			lo, hi = t.Level(h)
		}
		for sw := lo; sw < hi; sw++ {
			if a.atMost(sw) < a.g.Nodes {
				continue
			}
			p, ok := a.under(t.Switches[sw].LeafLo, t.Switches[sw].LeafHi, best.cost)
			if ok && p.cost.Less(best.cost) {
				best, found = p, true
			}
		}
		if found {
			best.cost.Height = h
			return best, true
		}
	}
	return place{}, false
}

// oneBin is the best single bin that holds the whole gang.
func (a *ask) oneBin() (best place, found bool) {
	for l := int32(0); l < a.s.lay.tree.Leaves(); {
		if a.height == 0 && a.atMost(l) < a.g.Nodes {
			l++
			continue
		}
		b, next := a.bin(l)
		if b.cap >= a.need {
			p := place{lo: l, hi: next, cost: Cost{Leaves: 1, Left: b.nodes - a.g.Nodes, Broken: one(b.broken)}}
			if a.height == 0 {
				p.cost.Waste = a.waste(l)
			}
			if !found || a.better(p.cost, best.cost) {
				best, found = p, true
				best.picks = append(best.picks[:0], pick{b, 1})
			}
		}
		l = next
	}
	return best, found
}

// better is Less, but for a gang that wants to be spread: then the more is left, the better.
func (a *ask) better(c, d Cost) bool {
	if a.g.Spread {
		c.Left, d.Left, c.Waste, d.Waste = -c.Left, -d.Left, -c.Waste, -d.Waste
	}
	return c.Less(d)
}

// under is the best choice of bins among leaves lo ≤ l < hi; false when they do not hold the gang, or need more bins than
// the best so far or than --switches allows.
func (a *ask) under(lo, hi int32, best Cost) (place, bool) {
	var kinds kinds
	total := 0
	for l := lo; l < hi; {
		b, next := a.bin(l)
		if b.cap > 0 {
			kinds.add(b)
			total += b.cap
		}
		l = next
	}
	if total < a.need {
		return place{}, false
	}
	n := kinds.fewest(a.need)
	if n > best.Leaves || a.g.insists() && n > a.g.Switches {
		return place{}, false
	}
	p := place{lo: lo, hi: hi, picks: kinds.choose(a.need, n, a.g.Spread)}
	p.cost.Leaves = n
	for _, k := range p.picks {
		p.cost.Left += k.nodes * k.n
		p.cost.Broken += one(k.broken) * k.n
	}
	p.cost.Left -= a.g.Nodes
	return p, true
}

// anywhere places a gang for which closeness is worth nothing: it fills the bins with least room first, so that wide gangs
// find the others whole.
func (a *ask) anywhere() (place, bool) {
	var kinds kinds
	leaves := a.s.lay.tree.Leaves()
	for l := int32(0); l < leaves; {
		b, next := a.bin(l)
		if b.cap > 0 {
			kinds.add(b)
		}
		l = next
	}
	p := place{hi: leaves, picks: kinds.smallest(a.need)}
	if p.picks == nil {
		return p, false
	}
	n := 0
	for _, k := range p.picks {
		n += k.n
	}
	if a.g.insists() && n > a.g.Switches {
		return a.under(0, leaves, Cost{Leaves: a.g.Switches})
	}
	return p, true
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
