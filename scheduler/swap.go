package scheduler

import (
	"slices"

	"github.com/assay-gpu/assay/scheduler/topo"
)

// Swap finds a node in place of each that a running gang has lost, and leaves the others their rank. held is what the gang
// has, the lost nodes included; the new ones stand where those stood. A new node keeps every promise that the first
// placement made: NVLink domain, segment, common switch, leaves, grade. Of those that do it hangs as close to the lost one
// as can be: under its leaf, else under the lowest switch above it; of equals where the fewest others could have gone.
//
// Like Place it finds all or none. The queue asks it before it places anything else: a gang that lost a node has the
// first claim on another.
func Swap(s *Snapshot, g Gang, held []Take, lost []int32) Plan {
	p := Plan{Gang: g.ID, At: s.Now(), Policy: policy(&g)}
	one := g
	one.Nodes, one.Segment, one.Group, one.PerLeaf, one.Switches, one.Near, one.SameGrade = 1, 0, 0, 0, 0, Closest, false
	a, err := newAsk(s, &one)
	whole, err2 := newAsk(s, &g)
	if err != nil || err2 != nil || len(held) != g.Nodes {
		p.Refused = refuse(s, &g)
		return p
	}
	nodes := slices.Clone(held)
	for k := range nodes {
		if !slices.Contains(lost, nodes[k].Node) {
			continue
		}
		take, ok := a.instead(whole, nodes, k)
		if !ok {
			p.Refused = refuseSwap(s, &one, lost)
			return p
		}
		nodes[k] = take
	}
	if err := fits(s, g, Plan{Nodes: nodes}, nodes); err != nil {
		// The nodes that it keeps break a promise by themselves: nothing that is swapped mends that.
		p.Refused = refuseSwap(s, &one, lost)
		return p
	}
	p.Nodes, p.Cost = nodes, whole.cost(sortedByNode(nodes))
	return p
}

// Back places a gang that lost a node, and has ended for it, on the nodes it had, with another in place of each that it cannot
// have now. had is in rank order; so is the plan, and who comes back has the rank it had.
func Back(s *Snapshot, g Gang, had []int32) (Plan, bool) {
	one := g
	one.Nodes, one.Segment, one.Group, one.PerLeaf, one.Switches, one.Near, one.SameGrade = 1, 0, 0, 0, 0, Closest, false
	a, err := newAsk(s, &one)
	if err != nil || len(had) != g.Nodes {
		return Plan{}, false
	}
	held, lost := make([]Take, len(had)), []int32(nil)
	for k, i := range had {
		held[k].Node = i
		c, b := s.lay.bit(i)
		switch n := s.node(i); {
		case a.passes(c)&b == 0:
			lost = append(lost, i)
		case g.Share.Kind != NoShare:
			held[k].Part, _, _ = a.part(n)
		default:
			held[k].GPUs = a.gpus(n)
		}
	}
	if len(lost) == len(had) {
		return Plan{}, false // nothing to come back to
	}
	p := Swap(s, g, held, lost)
	return p, p.OK() && Fits(s, g, p) == nil
}

// refuseSwap counts nodes by what keeps each from standing in for a lost one.
func refuseSwap(s *Snapshot, one *Gang, lost []int32) *Refusal {
	r := refuse(s, one)
	r.Lost, r.Need = lost, len(lost)
	return r
}

func sortedByNode(nodes []Take) []Take {
	out := slices.Clone(nodes)
	slices.SortFunc(out, func(x, y Take) int { return int(x.Node - y.Node) })
	return out
}

// instead is the node that takes the place of nodes[k], climbing from the lost one's leaf to the top. whole is the gang's
// own ask, for what its nodes promise together.
func (a *ask) instead(whole *ask, nodes []Take, k int) (Take, bool) {
	t := a.s.lay.tree
	old := nodes[k]
	done := span{-1, -1} // looked at, a level below
	for sw := t.Leaf[old.Node]; sw != topo.None; sw = t.Switches[sw].Parent {
		var best Take
		least := -1
		for l := t.Switches[sw].LeafLo; l < t.Switches[sw].LeafHi; l++ {
			if l >= done.lo && l < done.hi {
				continue
			}
			b := a.leaf(l)
			if b.nodes == 0 || least >= 0 && b.nodes >= least {
				continue
			}
			if take, ok := a.fitting(whole, nodes, k, l); ok {
				best, least = take, b.nodes
			}
		}
		nodes[k] = old
		if least >= 0 {
			return best, true
		}
		done = span{t.Switches[sw].LeafLo, t.Switches[sw].LeafHi}
	}
	return Take{}, false
}

// fitting is the first node of leaf l that passes and with which nodes keep their promises. It leaves nodes[k] changed.
func (a *ask) fitting(whole *ask, nodes []Take, k int, l int32) (Take, bool) {
	sw := &a.s.lay.tree.Switches[l]
	silent := func(string, string, ...any) error { return errShape }
	for _, take := range a.takeNodes(nil, sw.Lo, sw.Hi, int(sw.Hi-sw.Lo)) {
		if slices.ContainsFunc(nodes, func(n Take) bool { return n.Node == take.Node }) {
			continue
		}
		n := a.s.node(take.Node)
		if whole.g.SameGrade && (n.grade == 0 || n.grade != a.s.node(nodes[k].Node).grade) {
			continue
		}
		if a.g.Share.Kind != NoShare {
			take.Part, _, _ = a.part(n)
		} else {
			take.GPUs = a.gpus(n)
		}
		nodes[k] = take
		if whole.shape(nodes, silent) == nil {
			return take, true
		}
	}
	return Take{}, false
}
