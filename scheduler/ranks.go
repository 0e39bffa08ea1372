package scheduler

import (
	"iter"
	"math/bits"
)

// gpus is phase six of Place: the mask of GPUs that the gang takes of n, or 0 when n has none to its liking.
func (a *ask) gpus(n *node) uint32 {
	free := n.usable()
	if a.whole {
		if a.g.Joined > 1 && !n.shape.Groups(free, a.g.Joined) {
			return 0
		}
		return free
	}
	if a.g.Joined > 1 {
		return n.shape.PickGroups(free, a.k, a.g.Joined)
	}
	return n.shape.Pick(free, a.k)
}

// A Rank is one process of a gang: its node and the GPUs it has there.
type Rank struct {
	Node int32
	GPUs uint32 // mask
}

// Ranks lists the ranks of p, whose gang is g, in their order: nodes by index, so that neighbours in rank hang close
// together, and within a node GPUs that NVLink joins side by side.
func (s *Snapshot) Ranks(g Gang, p Plan) iter.Seq2[int, Rank] {
	return func(yield func(int, Rank) bool) {
		rank := 0
		for _, t := range p.Nodes {
			n := s.node(t.Node)
			order := n.shape.Order(t.GPUs, max(g.Joined, 1))
			count := g.Ranks
			if count == 0 {
				count = max(len(order), 1)
			}
			for r := range count {
				var mask uint32
				// So many GPUs each; what does not divide goes to the first ranks.
				for i := r * len(order) / count; i < (r+1)*len(order)/count; i++ {
					mask |= 1 << order[i]
				}
				if !yield(rank, Rank{t.Node, mask}) {
					return
				}
				rank++
			}
		}
	}
}

// spare is how many GPUs n would have left.
func spare(n *node, taken uint32) int { return bits.OnesCount32(n.usable() &^ taken) }
