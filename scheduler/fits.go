package scheduler

import (
	"fmt"
	"math/bits"

	"github.com/assay-gpu/assay/scheduler/topo"
)

// A MisfitError says why a plan does not hold any more.
type MisfitError struct{ Gang, Node, Text string }

func (e *MisfitError) Error() string {
	if e.Node == "" {
		return "plan of " + e.Gang + ": " + e.Text
	}
	return "plan of " + e.Gang + ": " + e.Node + ": " + e.Text
}

// Fits reports whether p is a place for g in s: nil, or a *MisfitError or *GangError that says why not. It asks what Place
// asks of each node, and of the whole what the gang demands: number, closeness, slices and switches. It does not ask
// whether there is a better place.
func Fits(s *Snapshot, g Gang, p Plan) error {
	a, err := newAsk(s, &g)
	if err != nil {
		return err
	}
	bad := func(node, format string, args ...any) error {
		return &MisfitError{g.ID, node, fmt.Sprintf(format, args...)}
	}
	if len(p.Nodes) != g.Nodes {
		return bad("", "%d nodes, but it needs %d", len(p.Nodes), g.Nodes)
	}
	var grade uint8
	for k, t := range p.Nodes {
		if k > 0 && t.Node <= p.Nodes[k-1].Node {
			return bad("", "nodes are not in order")
		}
		if err := s.canTake(g.ID, t, nil); err != nil {
			return err
		}
		name, n := s.lay.tree.Nodes[t.Node], s.node(t.Node)
		c, b := s.lay.bit(t.Node)
		if a.passes(c)&b == 0 {
			return bad(name, "%s", a.why(t.Node))
		}
		switch {
		case t.Part.Kind != g.Share.Kind:
			return bad(name, "a share of another kind")
		case t.Part.Kind != NoShare:
			if n.covered&(1<<t.Part.GPU) == 0 {
				return bad(name, "GPU %d is not certified", t.Part.GPU)
			}
			if want, _, ok := g.Share.on(n, int(t.Part.GPU)); !ok || want.Amount != t.Part.Amount || want.Units != t.Part.Units || want.Memory != t.Part.Memory {
				return bad(name, "the part of GPU %d is not what it asks for", t.Part.GPU)
			}
		case t.GPUs&^n.usable() != 0:
			return bad(name, "GPU mask %#x is not usable", t.GPUs&^n.usable())
		case a.whole && t.GPUs != n.shape.All(), !a.whole && bits.OnesCount32(t.GPUs) != a.k:
			return bad(name, "%d GPUs, but it needs %d", bits.OnesCount32(t.GPUs), a.k)
		case g.Joined > 1 && !n.shape.Groups(t.GPUs, g.Joined):
			return bad(name, "GPU mask %#x is not in NVLink groups of %d", t.GPUs, g.Joined)
		}
		if g.SameGrade && (n.grade == 0 || k > 0 && n.grade != grade) {
			return bad(name, "grade %d beside grade %d", n.grade, grade)
		}
		grade = n.grade
	}
	return a.shape(p.Nodes, bad)
}

// shape checks what the gang demands of its nodes together.
func (a *ask) shape(nodes []Take, bad func(node, format string, args ...any) error) error {
	t, g := a.s.lay.tree, a.g
	leaves, inLeaf := 0, 0
	common, last := t.Leaf[nodes[0].Node], topo.None
	for k, n := range nodes {
		leaf := t.Leaf[n.Node]
		if common != topo.None {
			common = t.Common(common, leaf)
		}
		if leaf != last {
			leaves, inLeaf, last = leaves+1, 0, leaf
		}
		inLeaf++
		name := t.Nodes[n.Node]
		switch head := nodes[k-k%max(a.unit, 1)].Node; {
		case g.PerLeaf > 0 && inLeaf > g.PerLeaf:
			return bad(name, "the %dth node under one leaf, and %d are allowed", inLeaf, g.PerLeaf)
		case a.unit > 1 && (t.Domain[n.Node] == topo.None || t.Domain[n.Node] != t.Domain[head] || leaf != t.Leaf[head]):
			return bad(name, "not in the NVLink domain of its group")
		}
		if g.Segment > 0 {
			if head := nodes[k-k%g.Segment].Node; t.Up(leaf, g.SegmentHeight) != t.Up(t.Leaf[head], g.SegmentHeight) {
				return bad(name, "not under the switch of its segment")
			}
		}
	}
	switch {
	case g.insists() && leaves > g.Switches:
		return bad("", "%d leaf switches, and %d are allowed for now", leaves, g.Switches)
	case common == topo.None && g.Near != Anywhere:
		return bad("", "no switch joins its nodes")
	case g.Near == Required && t.Switches[common].Height > g.Height:
		return bad("", "switch %s is higher than it may need", t.Switches[common].Name)
	}
	return nil
}
