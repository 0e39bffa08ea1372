package scheduler

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// A Fleet keeps a snapshot up to date by events. It has one user at a time; the snapshots it hands out have many.
type Fleet struct {
	live  Snapshot
	own   []owned        // by block: what was made since the last snapshot, so that it may be changed in place
	owned []bool         // the same of pages of Running
	fresh bool           // the same of counts, full and idle
	slots map[string]int // where in running each is, by ID
	empty []int          // slots that are free
}

// owned says that a block, and which of its cells, belong to the fleet alone.
type owned struct {
	block bool
	cells uint32
}

// NewFleet is the fleet of a tree before anything is known of its nodes.
func NewFleet(t *topo.Tree, now time.Time) *Fleet {
	const stride = 9 // nodes of 8 GPUs; a larger one makes it grow
	lay := newLayout(t)
	f := &Fleet{slots: map[string]int{}, live: Snapshot{now: floor(now), lay: lay, stride: stride}}
	f.live.counts = make([]int32, len(t.Switches)*stride)
	f.live.full, f.live.idle = make([]int32, t.Leaves()), make([]int32, t.Leaves())
	for ci := range lay.cells() {
		if ci%blockCells == 0 {
			f.live.blocks = append(f.live.blocks, newBlock(stride))
		}
		lo, hi := lay.first[ci], lay.first[ci+1]
		f.live.blocks[ci/blockCells].cells[ci%blockCells] = &cell{lo, make([]node, hi-lo)}
	}
	f.own, f.fresh = make([]owned, len(f.live.blocks)), true
	for b := range f.own {
		f.own[b] = owned{true, ^uint32(0)}
	}
	return f
}

// Snapshot is the fleet as it is now. It costs what Edit costs, at the next change.
func (f *Fleet) Snapshot() *Snapshot {
	s := f.live
	f.share()
	return &s
}

// View is the fleet as it is now, good until its next change: for a reader that decides before anything else happens.
func (f *Fleet) View() *Snapshot { return &f.live }

// share gives up all that snapshots may now see.
func (f *Fleet) share() {
	f.own = make([]owned, len(f.live.blocks))
	f.owned = make([]bool, len(f.live.running))
	f.fresh = false
}

// unshare copies the tables of pointers and counts before the first change after a snapshot.
func (f *Fleet) unshare() {
	if !f.fresh {
		f.live.blocks, f.live.running = slices.Clone(f.live.blocks), slices.Clone(f.live.running)
		f.live.counts = slices.Clone(f.live.counts)
		f.live.full, f.live.idle = slices.Clone(f.live.full), slices.Clone(f.live.idle)
		f.fresh = true
	}
}

// change runs do on node i and brings what is counted of it up to date; certified says that its certificate changes.
func (f *Fleet) change(i int32, certified bool, do func(*node)) {
	f.unshare()
	s := &f.live
	ci := s.lay.cell[i]
	b, k := f.mine(ci)
	c := b.cells[k]
	at := int(i - c.base)
	n, bit := &c.nodes[at], uint64(1)<<at
	open, usable, whole, known := b.open[k]&bit != 0, bits.OnesCount32(n.usable()), b.whole[k]&bit != 0, b.known[k]&bit != 0
	do(n)
	b.refresh(k, at)
	if certified {
		b.certify(k)
	}
	leaf := s.lay.tree.Leaf[i]
	s.full[leaf] += delta(known, b.known[k]&bit != 0)
	s.idle[leaf] += delta(whole, b.whole[k]&bit != 0)
	f.recount(leaf, open, usable, b.open[k]&bit != 0, bits.OnesCount32(n.usable()))
}

// mine is the block of cell ci and its place there, copied first where a snapshot may see them.
func (f *Fleet) mine(ci int32) (*block, int32) {
	at, k := ci/blockCells, ci%blockCells
	own := &f.own[at]
	if !own.block {
		f.live.blocks[at], own.block = f.live.blocks[at].clone(), true
	}
	b := f.live.blocks[at]
	if own.cells&(1<<k) == 0 {
		b.cells[k] = b.cells[k].clone()
		own.cells |= 1 << k
	}
	return b, k
}

// recount moves a node of leaf from one row of counts to another, up to the top. Rows go from -1, where a node that is not
// open is counted nowhere.
func (f *Fleet) recount(leaf int32, wasOpen bool, was int, isOpen bool, is int) {
	if !wasOpen {
		was = -1
	}
	if !isOpen {
		is = -1
	}
	if was == is {
		return
	}
	step, lo, hi := int32(1), was, is
	if is < was {
		step, lo, hi = -1, is, was
	}
	for sw := leaf; sw != topo.None; sw = f.live.lay.tree.Switches[sw].Parent {
		row := f.live.counts[int(sw)*f.live.stride:]
		for k := lo + 1; k <= hi; k++ {
			row[k] += step
		}
	}
}

func delta(was, is bool) int32 {
	switch {
	case is && !was:
		return 1
	case was && !is:
		return -1
	}
	return 0
}

// See tells of a node: its shape and its measured grade, 0 for none. A node told of again keeps its work; its GPUs must
// be at least those that the work has.
func (f *Fleet) See(i int32, shape *topo.Shape, grade uint8) error {
	n := f.live.node(i)
	if n.shape != nil {
		if held := (n.shape.All() &^ n.free) &^ shape.All(); held != 0 {
			return fmt.Errorf("node %s: seen with %d GPUs while work has GPU mask %#x", f.live.lay.tree.Nodes[i], shape.GPUs, held)
		}
	}
	if shape.GPUs >= f.live.stride {
		f.grow(shape.GPUs + 1)
	}
	regrade := n.grade != grade
	f.change(i, false, func(n *node) {
		held := uint32(0)
		if n.shape != nil {
			held = n.shape.All() &^ n.free
		}
		n.shape, n.grade, n.free = shape, grade, shape.All()&^held
	})
	if regrade {
		f.regrade()
	}
	return nil
}

// regrade makes the sets of nodes of each grade anew. Grades change with a measurement, once in days.
func (f *Fleet) regrade() {
	sets := make([]*NodeSet, 256)
	for i := range f.live.lay.tree.Nodes {
		if g := f.live.node(int32(i)).grade; g > 0 {
			if sets[g] == nil {
				sets[g] = f.live.Set()
			}
			c, b := f.live.lay.bit(int32(i))
			sets[g].words[c] |= b
		}
	}
	for len(sets) > 0 && sets[len(sets)-1] == nil {
		sets = sets[:len(sets)-1]
	}
	f.live.grades = sets
}

// grow makes room in the counts for nodes with more GPUs.
func (f *Fleet) grow(stride int) {
	f.unshare()
	s := &f.live
	old := s.stride
	counts := make([]int32, len(s.lay.tree.Switches)*stride)
	for sw := range s.lay.tree.Switches {
		copy(counts[sw*stride:], s.counts[sw*old:(sw+1)*old])
	}
	s.counts, s.stride = counts, stride
	for ci := range int32(s.lay.cells()) {
		b, k := f.mine(ci)
		if k == 0 {
			b.has = make([]row, stride)
		}
		for i := range b.cells[k].nodes {
			b.refresh(k, i)
		}
	}
}

// Certify gives node i a certificate.
func (f *Fleet) Certify(i int32, c Certificate) {
	f.change(i, true, func(n *node) {
		n.serial, n.level, n.covered = c.Serial, c.Level, c.GPUs
		n.issued, n.expires = ceil(c.Issued), floor(c.Expires)
	})
}

// Revoke takes node i's certificate away. What runs there goes on.
func (f *Fleet) Revoke(i int32) {
	f.change(i, true, func(n *node) { n.serial, n.level, n.covered, n.issued, n.expires = 0, checks.NoLevel, 0, 0, 0 })
}

// Bar keeps new work off node i; Unbar lets it on again.
func (f *Fleet) Bar(i int32, b Bar) { f.change(i, false, func(n *node) { n.bar = &b }) }

// Unbar ends a Bar.
func (f *Fleet) Unbar(i int32) { f.change(i, false, func(n *node) { n.bar = nil }) }

// Tick moves the clock, forward only.
func (f *Fleet) Tick(now time.Time) {
	f.live.now = max(f.live.now, floor(now))
	past := func(r Reservation) bool { return !r.End.IsZero() && floor(r.End) <= f.live.now }
	if slices.ContainsFunc(f.live.reservations, past) {
		f.live.reservations = slices.DeleteFunc(slices.Clone(f.live.reservations), past)
	}
}

// Reserve adds a reservation, or puts it in place of the one of that name.
func (f *Fleet) Reserve(r Reservation) {
	f.Unreserve(r.Name)
	f.live.reservations = append(slices.Clone(f.live.reservations), r)
	slices.SortFunc(f.live.reservations, func(a, b Reservation) int { return cmp.Compare(a.Name, b.Name) })
}

// Unreserve removes a reservation.
func (f *Fleet) Unreserve(name string) {
	f.live.reservations = slices.DeleteFunc(slices.Clone(f.live.reservations), func(r Reservation) bool { return r.Name == name })
}
