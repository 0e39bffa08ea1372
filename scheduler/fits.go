package scheduler

import (
	"fmt"
	"math/bits"
	"slices"

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

// Fits reports whether p is a place for g in s: nil, or a *MisfitError, *BusyError or *GangError that says why not. It asks
// what Place asks of each node, and of the whole what the gang demands: number, closeness, slices and switches. It does
// not ask whether there is a better place.
func Fits(s *Snapshot, g Gang, p Plan) error { return fits(s, g, p, nil) }

// fits is Fits for a gang that has held already: of those nodes only the shape is asked, for what runs, runs.
func fits(s *Snapshot, g Gang, p Plan, held []Take) error {
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
	seen := make(map[int32]bool, len(p.Nodes))
	for k, t := range p.Nodes {
		if t.Node < 0 || int(t.Node) >= s.Len() || seen[t.Node] {
			return bad(fmt.Sprint("node ", t.Node), "not in the topology, or named twice")
		}
		seen[t.Node] = true
		if k > 0 && g.SameGrade && s.node(t.Node).grade != grade || g.SameGrade && s.node(t.Node).grade == 0 {
			return bad(s.lay.tree.Nodes[t.Node], "grade %d is not that of the others", s.node(t.Node).grade)
		}
		grade = s.node(t.Node).grade
		if slices.Contains(held, t) {
			continue
		}
		if err := s.canTake(g.ID, t, nil); err != nil {
			return err
		}
		name, n := s.lay.tree.Nodes[t.Node], s.node(t.Node)
		c, b := s.lay.bit(t.Node)
		if a.passes(c)&b == 0 {
			return bad(name, "%s", a.first(t.Node))
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
	}
	return a.shape(p.Nodes, bad)
}

// shape checks what the gang demands of its nodes together.
func (a *ask) shape(nodes []Take, bad func(node, format string, args ...any) error) error {
	t, g := a.s.lay.tree, a.g
	inLeaf := map[int32]int{}
	common := t.Leaf[nodes[0].Node]
	for k, n := range nodes {
		leaf, name := t.Leaf[n.Node], t.Nodes[n.Node]
		if common != topo.None {
			common = t.Common(common, leaf)
		}
		inLeaf[leaf]++
		switch head := nodes[k-k%a.unit].Node; {
		case g.PerLeaf > 0 && inLeaf[leaf] > g.PerLeaf:
			return bad(name, "the %dth node under one leaf, and %d are allowed", inLeaf[leaf], g.PerLeaf)
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
	case g.insists() && len(inLeaf) > g.Switches:
		return bad("", "%d leaf switches, and %d are allowed for now", len(inLeaf), g.Switches)
	case common == topo.None && g.Near != Anywhere:
		return bad("", "no switch joins its nodes")
	case g.Near == Required && t.Switches[common].Height > g.Height:
		return bad("", "switch %s is higher than it may need", t.Switches[common].Name)
	}
	return nil
}

// first is the first reason that keeps node i out, in words.
func (a *ask) first(i int32) string {
	text := "does not pass"
	c, b := a.s.lay.bit(i)
	a.reasons(c, func(r Reason, w uint64) {
		if w&b == 0 {
			return
		}
		if n := a.s.node(i); r == Barred {
			text = n.bar.text()
			return
		}
		for _, x := range nearFirst {
			if x.r == r {
				text = singular(1, x.text)
			}
		}
	})
	return text
}

// errShape is what shape says when nobody asks for words.
var errShape = &MisfitError{Text: "its nodes break a promise"}
