package scheduler

import (
	"fmt"
	"slices"
)

// A BusyError says that work cannot have what other work has. Nothing was changed.
type BusyError struct{ ID, Node, Text string }

func (e *BusyError) Error() string { return "start " + e.ID + " on " + e.Node + ": " + e.Text }

// Start gives r its nodes. Started again it changes nothing. It asks for no certificate: what runs, runs.
func (f *Fleet) Start(r *Running) error {
	if _, again := f.slots[r.ID]; again {
		return nil
	}
	for k, t := range r.Nodes {
		if err := f.live.canTake(r.ID, t, r.Nodes[:k]); err != nil {
			return err
		}
	}
	for _, t := range r.Nodes {
		f.change(t.Node, false, func(n *node) { n.take(t) })
	}
	if len(f.empty) == 0 {
		f.unshare()
		f.live.running, f.owned = append(f.live.running, new(page)), append(f.owned, true)
		for j := range pageSize {
			f.empty = append(f.empty, len(f.live.running)*pageSize-1-j)
		}
	}
	slot := f.empty[len(f.empty)-1]
	f.empty = f.empty[:len(f.empty)-1]
	f.slots[r.ID] = slot
	*f.slot(slot) = r
	f.live.work++
	return nil
}

// End frees what the work of that ID has, and reports whether there was such work.
func (f *Fleet) End(id string) bool {
	slot, ok := f.slots[id]
	if !ok {
		return false
	}
	at := f.slot(slot)
	for _, t := range (*at).Nodes {
		f.change(t.Node, false, func(n *node) { n.release(t) })
	}
	*at = nil
	delete(f.slots, id)
	f.empty = append(f.empty, slot)
	f.live.work--
	return true
}

// Work is the work of that ID, or nil.
func (f *Fleet) Work(id string) *Running {
	slot, ok := f.slots[id]
	if !ok {
		return nil
	}
	return f.live.running[slot/pageSize][slot%pageSize]
}

// slot is where Running number i lies, in a page that may be changed.
func (f *Fleet) slot(i int) **Running {
	f.unshare()
	p := i / pageSize
	if !f.owned[p] {
		c := *f.live.running[p]
		f.live.running[p], f.owned[p] = &c, true
	}
	return &f.live.running[p][i%pageSize]
}

// canTake reports why t cannot be had; before is what the same work takes besides.
func (s *Snapshot) canTake(id string, t Take, before []Take) error {
	if t.Node < 0 || int(t.Node) >= s.Len() {
		return &BusyError{id, fmt.Sprint("node ", t.Node), "no such node"}
	}
	n := s.node(t.Node)
	bad := func(format string, args ...any) error {
		return &BusyError{id, s.lay.tree.Nodes[t.Node], fmt.Sprintf(format, args...)}
	}
	switch {
	case n.shape == nil:
		return bad("nobody has told of the node")
	case slices.ContainsFunc(before, func(o Take) bool { return o.Node == t.Node }):
		return bad("named twice")
	case t.GPUs&^n.free != 0:
		return bad("GPU mask %#x is not free", t.GPUs&^n.free)
	case t.GPUs != 0 && t.Part.Kind != NoShare:
		return bad("whole GPUs and a part of one")
	case t.Part.Kind != NoShare:
		return n.canPart(t.Part, bad)
	}
	return nil
}

func (n *node) take(t Take) {
	n.free &^= t.GPUs
	if t.Part.Kind != NoShare {
		n.parts = append(slices.Clip(n.parts), t.Part)
		n.free &^= 1 << t.Part.GPU
	}
}

func (n *node) release(t Take) {
	n.free |= t.GPUs
	if t.Part.Kind == NoShare {
		return
	}
	if i := slices.Index(n.parts, t.Part); i >= 0 {
		n.parts = slices.Delete(slices.Clone(n.parts), i, i+1)
	}
	if len(n.parts) == 0 {
		n.parts = nil
	}
	if !slices.ContainsFunc(n.parts, func(p Part) bool { return p.GPU == t.Part.GPU }) {
		n.free |= 1 << t.Part.GPU
	}
}
