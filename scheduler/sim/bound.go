package sim

import (
	"cmp"
	"math/bits"
	"slices"
)

// reachable is the fewest leaf switches on which j could start now, wherever in the tree: those with the most usable nodes,
// one after the other, until there are enough. No placement uses fewer. Nodes that are kept for others count as usable.
func (r *run) reachable(j *Job) int {
	view, set := r.c.fleet.View(), r.models(j)
	free := make([]int, view.Tree().Leaves())
	for i := range r.health {
		n := view.Node(int32(i))
		if !r.health[i].down && bits.OnesCount32(uint32(n.Free)) >= max(1, j.GPUs) && (set == nil || set.Has(int32(i))) {
			free[view.Tree().Leaf[i]]++
		}
	}
	slices.SortFunc(free, func(a, b int) int { return cmp.Compare(b, a) })
	for k, left := 0, j.Nodes; k < len(free); k++ {
		if left -= free[k]; left <= 0 {
			return k + 1
		}
	}
	return len(free)
}

// split is the free GPUs on nodes that are partly in use: a gang of whole nodes cannot have them.
func (r *run) split() (gpus float64) {
	view := r.c.fleet.View()
	for i := range r.health {
		if n := view.Node(int32(i)); !r.health[i].down && n.Free != n.Shape.All() {
			gpus += float64(bits.OnesCount32(uint32(n.Free)))
		}
	}
	return gpus
}
