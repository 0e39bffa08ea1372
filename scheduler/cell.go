package scheduler

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// A node is one host in a snapshot. Times are Unix seconds.
type node struct {
	shape   *topo.Shape // nil: nobody has told of it yet
	free    uint32      // GPUs that no work has, whole or in part
	covered uint32      // GPUs that its certificate covers; 0 without one
	level   checks.Level
	grade   uint8  // measured performance class, 1 the best; 0: not measured
	serial  uint64 // of its certificate
	issued  int64
	expires int64
	bar     *Bar   // why it takes no work; nil: it does
	parts   []Part // what is taken of its shared GPUs
}

// usable is the mask of GPUs that a job could have, were the certificate's level and time to its liking.
func (n *node) usable() uint32 {
	if n.bar != nil || n.shape == nil {
		return 0
	}
	return n.free & n.covered &^ n.shape.MIG
}

// whole reports whether all of it could be had.
func (n *node) whole() bool {
	return n.shape != nil && n.bar == nil && n.usable() == n.shape.All()
}

// A cell is up to 64 nodes under one leaf. Bit i of each word is the node base+i, so one operation tests them all. A cell
// that a snapshot holds is never changed.
type cell struct {
	// What every placement reads comes first and side by side: a look at a cell is two or three lines of the cache.
	first int64                     // the earliest expiry of its certificates; never without any
	whole uint64                    // all its GPUs are free, covered and open
	level [checks.Intake + 1]uint64 // level[l]: certified at l or deeper
	has   [topo.MaxGPUs + 1]uint64  // has[k]: open, and at least k GPUs are usable
	known uint64                    // somebody has told of it
	open  uint64                    // takes work
	parts uint64                    // some GPU of it is shared
	odd   uint64                    // its shape or certificate may make it fail otherwise than by being busy
	base  int32
	nodes []node

	// Valid until: the nodes' expiries in order, and with each the nodes that expire then or later. "How many hold until t"
	// is a search, whatever the time is: nothing here changes with the clock.
	holds []hold
}

// A hold is one expiry, and the nodes whose certificate holds until then.
type hold struct {
	until int64
	live  uint64
}

func newCell(base int32, n int) *cell {
	return &cell{base: base, nodes: make([]node, n), first: never}
}

func (c *cell) clone() *cell {
	d := *c
	d.nodes = slices.Clone(c.nodes)
	return &d // holds is replaced, never changed
}

// validAt is the nodes whose certificate has not expired before t.
func (c *cell) validAt(t int64) uint64 {
	if c.first >= t {
		return ^uint64(0) // those without a certificate fail its level
	}
	// Few certificates of a cell lapse within the hour: a scan from the front is shorter than a binary search.
	for i := range c.holds {
		if c.holds[i].until >= t {
			return c.holds[i].live
		}
	}
	return 0
}

// refresh brings the words for node i up to date, all but the certificate's. No node has stride GPUs or more.
func (c *cell) refresh(i, stride int) {
	n, b := &c.nodes[i], uint64(1)<<i
	set := func(w *uint64, on bool) {
		if on {
			*w |= b
		} else {
			*w &^= b
		}
	}
	set(&c.known, n.shape != nil)
	set(&c.open, n.shape != nil && n.bar == nil)
	set(&c.whole, n.whole())
	set(&c.parts, len(n.parts) > 0)
	set(&c.odd, n.shape != nil && (n.shape.GPUs < stride-1 || n.shape.MIG != 0 || n.covered != n.shape.All()))
	k := bits.OnesCount32(n.usable())
	for j := range stride {
		set(&c.has[j], c.open&b != 0 && j <= k)
	}
}

// certify brings the words about certificates up to date.
func (c *cell) certify() {
	c.level = [checks.Intake + 1]uint64{}
	order := make([]int, 0, len(c.nodes))
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.covered == 0 && n.level == checks.NoLevel {
			continue
		}
		for l := checks.QuickMIG; l <= n.level; l++ {
			c.level[l] |= 1 << i
		}
		order = append(order, i)
	}
	if len(order) == 0 {
		c.holds, c.first = nil, never
		return
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(c.nodes[b].expires, c.nodes[a].expires) })
	holds := make([]hold, len(order))
	all := uint64(0)
	for j, i := range order {
		all |= 1 << i
		holds[len(order)-1-j] = hold{c.nodes[i].expires, all}
	}
	// Of equal expiries only the first is ever met; the others say the same, so that equal nodes make equal cells.
	for j := 1; j < len(holds); j++ {
		if holds[j].until == holds[j-1].until {
			holds[j].live = holds[j-1].live
		}
	}
	c.holds, c.first = holds, holds[0].until
}
