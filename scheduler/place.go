package scheduler

import (
	"github.com/assay-gpu/assay/scheduler/topo"
)

// Place picks a node for every rank of g, or for none: a gang is never placed in part. Only nodes whose certificate is
// deep, young and lasting enough at the snapshot's time are considered. In order of preference the place has the lowest
// common switch, the fewest leaves, the fewest GPUs left over on nodes it shares, the fewest nodes left over under its
// leaves, the fewest wholly free leaves broken, and the lowest node index.
//
// If g does not fit, Plan.Nodes is empty and Plan.Refused counts nodes by the first reason each was passed over. The apply
// loop checks the plan again with the same Fits before it writes it.
func Place(s *Snapshot, g Gang) Plan {
	p, ok := Find(s, g)
	if !ok {
		p.Refused = refuse(s, &g)
	}
	return p
}

// Find is Place without the reasons, for callers that will try again anyway.
func Find(s *Snapshot, g Gang) (Plan, bool) {
	p := Plan{Gang: g.ID, At: s.Now(), Policy: policy(&g)}
	if g.SameGrade {
		return oneGrade(s, g, p)
	}
	a, err := newAsk(s, &g)
	if err != nil {
		return p, false
	}
	// A part comes from GPUs that are shared already, if those hold it: whole ones are worth more.
	a.shared = g.Share.Kind != NoShare
	at, ok := place{}, false
	if a.height > 0 && g.Near != Anywhere {
		// Segments above the leaves: the gang may be had closer together than they ask for.
		j := a.joint()
		if at, ok = j.find(); ok {
			a = j
		}
	}
	if !ok {
		at, ok = a.find()
	}
	if !ok && a.shared {
		a.shared = false
		at, ok = a.find()
	}
	if !ok {
		return p, false
	}
	p.Nodes = a.nodes(at)
	for i := range p.Nodes {
		t := &p.Nodes[i]
		if n := s.node(t.Node); g.Share.Kind != NoShare {
			t.Part, _, _ = a.part(n)
		} else {
			t.GPUs = a.gpus(n)
		}
	}
	p.Cost = a.cost(p.Nodes)
	if g.insists() && p.Cost.Leaves > g.Switches {
		return Plan{Gang: g.ID, At: s.Now(), Policy: p.Policy}, false // segments above the leaves: their bins were counted, not their leaves
	}
	return p, true
}

// oneGrade places g on nodes of one grade: of all grades the one with the best place, of equals the better grade.
func oneGrade(s *Snapshot, g Gang, best Plan) (Plan, bool) {
	g.SameGrade = false
	within := g.Within[:len(g.Within):len(g.Within)]
	found := false
	for _, set := range s.grades {
		if set == nil {
			continue
		}
		g.Within = append(within, set)
		if p, ok := Find(s, g); ok && (!found || p.Cost.Less(best.Cost)) {
			best, found = p, true
		}
	}
	return best, found
}

// cost is what the place costs, counted from its nodes.
func (a *ask) cost(nodes []Take) Cost {
	t := a.s.lay.tree
	var c Cost
	common, last := t.Leaf[nodes[0].Node], topo.None
	for _, n := range nodes {
		leaf := t.Leaf[n.Node]
		if common != topo.None {
			common = t.Common(common, leaf)
		}
		if leaf != last { // nodes come by index: leaves come together
			b := a.leaf(leaf)
			c.Leaves++
			c.Left += b.nodes
			c.Broken += one(b.broken)
			last = leaf
		}
		if n.Part.Kind != NoShare {
			_, left, _ := a.part(a.s.node(n.Node))
			c.Waste += left
		} else if !a.whole {
			c.Waste += spare(a.s.node(n.Node), n.GPUs)
		}
	}
	c.Left -= len(nodes)
	c.Height = t.Heights()
	if common != topo.None {
		c.Height = t.Switches[common].Height
	}
	return c
}
