package scheduler

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/assay-gpu/assay/checks"
)

// blockCells is how many cells one block has: so many that the words of a kind fill four lines of the cache.
const blockCells = 32

// A row is one word for each cell of a block.
type row [blockCells]uint64

// A block is what every placement asks of up to blockCells cells. Bit i of a word is node i of its cell, so that one
// operation tests up to 64 nodes; the words of a kind lie side by side, so that leaf after leaf reads along a line of the
// cache. A block that a snapshot holds is never changed.
type block struct {
	first [blockCells]int64      // the earliest expiry of a cell's certificates; never without any
	whole row                    // all its GPUs are free, covered and open
	level [checks.Intake + 1]row // level[l]: certified at l or deeper
	has   []row                  // has[k]: open, and at least k GPUs are usable; no node has len(has)
	known row                    // somebody has told of it
	open  row                    // takes work
	parts row                    // some GPU of it is shared
	odd   row                    // its shape or certificate may make it fail otherwise than by being busy

	// Valid until: the expiries of a cell's nodes in order, and with each the nodes that expire then or later. "How many hold
	// until t" is a search, whatever the time is: nothing here changes with the clock.
	holds [blockCells][]hold
	cells [blockCells]*cell // nil beyond the last
}

// A hold is one expiry, and the nodes whose certificate holds until then.
type hold struct {
	until int64
	live  uint64
}

func newBlock(stride int) *block {
	b := &block{has: make([]row, stride)}
	for k := range b.first {
		b.first[k] = never
	}
	return b
}

// clone copies all that may be changed in place: its cells and holds are replaced, never changed.
func (b *block) clone() *block {
	c := *b
	c.has = slices.Clone(b.has)
	return &c
}

// validAt is the nodes of cell k whose certificate has not expired before t.
func (b *block) validAt(k int32, t int64) uint64 {
	if b.first[k] >= t {
		return ^uint64(0) // those without a certificate fail its level
	}
	// Few certificates of a cell lapse within the hour: a scan from the front is shorter than a binary search, and how many
	// of the first do is nothing that a processor could guess, so that it takes no branch.
	h := b.holds[k]
	a, c, d, live := h[0], h[1], h[2], h[3].live
	if d.until >= t {
		live = d.live
	}
	if c.until >= t {
		live = c.live
	}
	if a.until >= t {
		live = a.live
	}
	if h[3].until >= t {
		return live
	}
	for h = h[4:]; h[0].until < t; h = h[1:] {
	}
	return h[0].live
}

// refresh brings the words for node i of cell k up to date, all but the certificate's.
func (b *block) refresh(k int32, i int) {
	n, bit := &b.cells[k].nodes[i], uint64(1)<<i
	set := func(w *uint64, on bool) {
		if on {
			*w |= bit
		} else {
			*w &^= bit
		}
	}
	set(&b.known[k], n.shape != nil)
	set(&b.open[k], n.shape != nil && n.bar == nil)
	set(&b.whole[k], n.whole())
	set(&b.parts[k], len(n.parts) > 0)
	set(&b.odd[k], n.shape != nil && (n.shape.GPUs < len(b.has)-1 || n.shape.MIG != 0 || n.covered != n.shape.All()))
	usable := bits.OnesCount32(n.usable())
	for j := range b.has {
		set(&b.has[j][k], b.open[k]&bit != 0 && j <= usable)
	}
}

// certify brings the words about the certificates of cell k up to date.
func (b *block) certify(k int32) {
	nodes := b.cells[k].nodes
	for l := range b.level {
		b.level[l][k] = 0
	}
	order := make([]int, 0, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if n.covered == 0 && n.level == checks.NoLevel {
			continue
		}
		for l := checks.QuickMIG; l <= n.level; l++ {
			b.level[l][k] |= 1 << i
		}
		order = append(order, i)
	}
	if len(order) == 0 {
		b.holds[k], b.first[k] = nil, never
		return
	}
	slices.SortFunc(order, func(x, y int) int { return cmp.Compare(nodes[y].expires, nodes[x].expires) })
	holds := make([]hold, len(order), max(len(order)+1, 4))
	all := uint64(0)
	for j, i := range order {
		all |= 1 << i
		holds[len(order)-1-j] = hold{nodes[i].expires, all}
	}
	// Of equal expiries only the first is ever met; the others say the same, so that equal nodes make equal blocks.
	for j := 1; j < len(holds); j++ {
		if holds[j].until == holds[j-1].until {
			holds[j].live = holds[j-1].live
		}
	}
	b.first[k] = holds[0].until
	for len(holds) < cap(holds) {
		holds = append(holds, hold{until: never}) // and none holds for ever
	}
	b.holds[k] = holds
}
