package scheduler

import (
	"math/bits"

	"github.com/assay-gpu/assay/scheduler/topo"
)

// cellNodes is how many nodes one cell holds at most: the bits of a word.
const cellNodes = 64

// A layout cuts the nodes of a tree into cells: up to 64 neighbours under one leaf, so that a test of all of them is a few
// operations on words. It never changes.
type layout struct {
	tree  *topo.Tree
	first []int32 // first[c] is the first node of cell c; one more closes the last
	cell  []int32 // the cell of each node
	leaf  []int32 // leaf[l] is the first cell of leaf l; one more closes the last

	// Parts of NVLink domains, by leaf: part[l] is the first of leaf l's; one more closes the last. A node without a domain
	// is in no part.
	part  []int32
	parts []span
}

// A span is a range of nodes under one leaf: lo ≤ i < hi.
type span struct{ lo, hi int32 }

func newLayout(t *topo.Tree) *layout {
	l := &layout{tree: t, cell: make([]int32, len(t.Nodes))}
	for leaf := range t.Leaves() {
		sw := &t.Switches[leaf]
		l.leaf = append(l.leaf, int32(len(l.first)))
		for lo := sw.Lo; lo < sw.Hi; lo += cellNodes {
			for i := lo; i < min(lo+cellNodes, sw.Hi); i++ {
				l.cell[i] = int32(len(l.first))
			}
			l.first = append(l.first, lo)
		}
		l.part = append(l.part, int32(len(l.parts)))
		for lo := sw.Lo; lo < sw.Hi; {
			hi := lo + 1
			for hi < sw.Hi && t.Domain[hi] == t.Domain[lo] {
				hi++
			}
			if t.Domain[lo] != topo.None {
				l.parts = append(l.parts, span{lo, hi})
			}
			lo = hi
		}
	}
	l.leaf = append(l.leaf, int32(len(l.first)))
	l.part = append(l.part, int32(len(l.parts)))
	l.first = append(l.first, int32(len(t.Nodes)))
	return l
}

func (l *layout) cells() int { return len(l.first) - 1 }

// bit is node i's cell and its bit there.
func (l *layout) bit(i int32) (cell int32, bit uint64) {
	c := l.cell[i]
	return c, 1 << (i - l.first[c])
}

// A NodeSet is a set of a tree's nodes, made by Snapshot.Set. It is immutable and may be kept: partitions and features
// are such sets.
type NodeSet struct {
	lay   *layout
	words []uint64 // by cell
}

// Has reports whether node i is in the set.
func (s *NodeSet) Has(i int32) bool {
	c, b := s.lay.bit(i)
	return s.words[c]&b != 0
}

// Len is the number of nodes in the set.
func (s *NodeSet) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// Nodes lists the nodes of the set by index.
func (s *NodeSet) Nodes() []int32 {
	var out []int32
	for c, w := range s.words {
		for ; w != 0; w &= w - 1 {
			out = append(out, s.lay.first[c]+int32(bits.TrailingZeros64(w)))
		}
	}
	return out
}
