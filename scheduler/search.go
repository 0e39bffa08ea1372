package scheduler

// A place is phase three of Place: the switch to place under, and how many bins of each kind to take there.
type place struct {
	lo, hi int32 // leaves below it
	cost   Cost  // of a gang placed there; Leaves counts bins
	picks  []pick
}

// find goes up the heights and returns the best place at the lowest one that has any, or false.
func (a *ask) find() (place, bool) {
	if a.g.Near == Anywhere {
		return a.anywhere()
	}
	// Bins themselves: every switch of their height, and lower ones that nothing joins below it.
	if p, ok := a.oneBin(); ok {
		return p, true
	}
	for h := a.height + 1; h <= a.top; h++ {
		if p, ok := a.atHeight(h); ok {
			return p, true
		}
	}
	return place{}, false
}

// atHeight is the best place under one switch of height h, of several bins.
func (a *ask) atHeight(h int) (place, bool) {
	t := a.s.lay.tree
	var best place
	var first, next candidate // the best so far, while it is the only one with so few bins; and the one at hand
	lo, hi := t.Level(h)
	for sw := lo; sw < hi; sw++ {
		if a.atMost(sw) < a.g.Nodes || !a.gather(&next, t.Switches[sw].LeafLo, t.Switches[sw].LeafHi) {
			continue
		}
		switch {
		case first.n == 0 && best.picks == nil, next.n < max(first.n, best.cost.Leaves):
			best, first, next = place{}, next, first
		case next.n == max(first.n, best.cost.Leaves):
			// Two with as few: only now is it worth to work out what each would leave.
			if first.n > 0 {
				best, first.n = a.choose(&first), 0
			}
			if !a.g.Spread && best.cost.Left == 0 && best.cost.Broken == 0 {
				continue
			}
			if p := a.choose(&next); a.better(p.cost, best.cost) {
				best = p
			}
		}
	}
	if first.n > 0 {
		best = a.choose(&first)
	}
	return best, best.picks != nil
}

// A candidate is a switch that holds the gang, its bins counted.
type candidate struct {
	lo, hi int32
	kinds  kinds
	n      int // bins at least; 0: there is no candidate
}

// gather counts the bins of leaves lo ≤ l < hi into c; false when they do not hold the gang, or only in more leaves than
// --switches allows.
func (a *ask) gather(c *candidate, lo, hi int32) bool {
	c.lo, c.hi, c.kinds.list = lo, hi, c.kinds.list[:0]
	if c.kinds.addAll(a, lo, hi) < a.need {
		return false
	}
	c.n = c.kinds.fewest(a.need)
	return !a.g.insists() || c.n <= a.g.Switches
}

// choose is the best choice of bins of c.
func (a *ask) choose(c *candidate) place {
	p := place{lo: c.lo, hi: c.hi, picks: c.kinds.choose(a.need, c.n, a.g.Spread, &a.table)}
	p.cost.Leaves = c.n
	for _, k := range p.picks {
		p.cost.Left += k.nodes * k.n
		p.cost.Broken += one(k.broken) * k.n
	}
	p.cost.Left -= a.g.Nodes
	return p
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
				best.picks = append(best.picks[:0], pick{b, key(b), 1})
				if !a.g.Spread && p.cost == (Cost{Leaves: 1}) {
					break // nothing is wasted, left or broken: none can be better, and the first counts
				}
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

// anywhere places a gang for which closeness is worth nothing: it fills the bins with least room first, so that wide gangs
// find the others whole.
func (a *ask) anywhere() (place, bool) {
	var c candidate
	if !a.gather(&c, 0, a.s.lay.tree.Leaves()) {
		return place{}, false
	}
	p := place{lo: c.lo, hi: c.hi, picks: c.kinds.smallest(a.need)}
	n := 0
	for _, k := range p.picks {
		n += k.n
	}
	if a.g.insists() && n > a.g.Switches {
		return a.choose(&c), true
	}
	return p, true
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
