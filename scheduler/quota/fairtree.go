package quota

import (
	"cmp"
	"math"
	"slices"
)

// FairTree is the fair share of every user by Slurm's Fair Tree, by ID; accounts have 0.
//
// At each level siblings are sorted by LF = S/U, greatest first: S and U are shares and usage as parts of the siblings'
// sum and of the parent's usage. Who has used nothing has LF without end, who has no shares has 0. The tree is walked depth
// first in that order; the first user met has rank n of n users, the next n-1, and the factor is rank/n. Users of equal
// LF have equal rank, a user goes before an account of equal LF, and the first user below an account that is tied with
// the user before it shares that user's rank.
//
// Slurm's documents say that sibling accounts of equal LF have their children merged. In its source the search for
// them ends at the first sibling that is an account, so it never merges; this follows the source.
func (h *History) FairTree() []float64 {
	w := fairTreeWalk{h: h, factor: make([]float64, h.tree.Len()), lf: make([]float64, h.tree.Len()), rank: h.tree.users, next: h.tree.users}
	w.level(h.tree.entries[Root].fairChildren, Root, false)
	return w.factor
}

type fairTreeWalk struct {
	h          *History
	factor, lf []float64
	rank, next int // of the user last met; of the next one, were there no ties
}

func (w *fairTreeWalk) level(siblings []ID, parent ID, tiedAbove bool) {
	t := w.h.tree
	for _, id := range siblings {
		w.lf[id] = w.levelFair(id, parent)
	}
	order := slices.Clone(siblings)
	slices.SortStableFunc(order, func(a, b ID) int {
		if c := cmp.Compare(w.lf[b], w.lf[a]); c != 0 {
			return c
		}
		return cmp.Compare(btoi(t.entries[b].User), btoi(t.entries[a].User))
	})
	for i, id := range order {
		tied := i > 0 && w.lf[order[i-1]] == w.lf[id]
		if i == 0 {
			tied = tiedAbove
		}
		if !t.entries[id].User {
			w.level(t.entries[id].fairChildren, id, tied)
			continue
		}
		if !tied {
			w.rank = w.next
		}
		w.factor[id] = float64(w.rank) / float64(t.users)
		w.next--
	}
}

func (w *fairTreeWalk) levelFair(id, parent ID) float64 {
	e := &w.h.tree.entries[id]
	sum := w.h.tree.entries[parent].shareSum
	switch {
	case e.Shares == ShareParent:
		return math.Inf(1)
	case e.Shares == 0 || sum == 0:
		return 0
	}
	used := 0.0
	if w.h.raw[parent] > 0 {
		used = w.h.raw[id] / w.h.raw[parent]
	}
	if used == 0 {
		return math.Inf(1)
	}
	return float64(e.Shares) / float64(sum) / used
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
