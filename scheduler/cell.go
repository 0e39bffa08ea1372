package scheduler

import (
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

// A cell is the nodes of up to 64 bits, side by side under one leaf; the words about them are in its block. A cell that a
// snapshot holds is never changed.
type cell struct {
	base  int32
	nodes []node
}

func (c *cell) clone() *cell { return &cell{c.base, slices.Clone(c.nodes)} }
