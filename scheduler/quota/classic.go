package quota

import "math"

// Classic is Slurm's classic fair share of every account and user, by ID, between 0 and 1:
//
//	F = 2^(-(Ue/S)/damp)
//
// S is the product, over the levels, of own shares to siblings' sum. Ua is own usage to all usage, at most 1. Ue is Ua for
// those directly below the root; below that Ua + (Ue of the parent - Ua) * own shares / siblings' sum. A user with share
// "parent" has its parent's values. damp is FairShareDampeningFactor, 1 or more. The root's entry is 0.
func (h *History) Classic(damp float64) []float64 {
	t := h.tree
	share, effective := make([]float64, t.Len()), make([]float64, t.Len())
	factor := make([]float64, t.Len())
	share[Root], effective[Root] = 1, 1
	t.visit(Root, func(id ID) {
		if id == Root {
			return
		}
		e := &t.entries[id]
		p := e.fairParent
		if e.Shares == ShareParent {
			share[id], effective[id] = share[p], effective[p]
		} else {
			actual := 0.0
			if h.raw[Root] > 0 {
				actual = min(1, h.raw[id]/h.raw[Root])
			}
			own := 0.0
			if sum := t.entries[p].shareSum; sum > 0 {
				own = float64(e.Shares) / float64(sum)
			}
			share[id] = share[p] * own
			switch {
			case p == Root:
				effective[id] = actual
			case t.entries[p].shareSum == 0:
				effective[id] = effective[p]
			default:
				effective[id] = actual + (effective[p]-actual)*own
			}
		}
		if share[id] > 0 {
			factor[id] = math.Pow(2, -(effective[id]/share[id])/damp)
		}
	})
	return factor
}
