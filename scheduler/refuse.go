package scheduler

import (
	"encoding/json"
	"math/bits"
)

// A Reason is the first thing that keeps a node from a gang, in the order in which they are asked.
type Reason uint8

const (
	Unseen      Reason = iota // in the topology, but nobody has told of it
	Barred                    // takes no work: lost, held, drained, quarantined …
	Outside                   // not in the partition, or not among the nodes the gang may use
	Kept                      // reserved for others, now or before the gang's limit
	Uncertified               // no certificate
	Shallow                   // certified at a lower level
	Lapsing                   // its certificate does not hold long enough
	Old                       // certified too long ago
	Small                     // fewer GPUs than it takes, or none that can be shared so
	Uncovered                 // enough GPUs are free, but its certificate leaves some out
	Taken                     // work has too many of its GPUs
	Unlinked                  // enough GPUs are free, but NVLink does not join them
	Apart                     // it would do, but not together with enough others
	reasons
)

var reasonNames = [reasons]string{"unseen", "barred", "outside", "reserved", "uncertified", "level", "lapsing", "age", "small", "uncovered", "busy", "nvlink", "apart"}

func (r Reason) String() string {
	if r < reasons {
		return reasonNames[r]
	}
	return "unknown"
}

// Counts says how many nodes each reason kept out first. Together they are all nodes of the tree.
type Counts [reasons]int

// MarshalJSON writes those that are not 0, by name.
func (c Counts) MarshalJSON() ([]byte, error) {
	m := map[string]int{}
	for r, n := range c {
		if n > 0 {
			m[reasonNames[r]] = n
		}
	}
	return json.Marshal(m)
}

// A Refusal is why a gang has no place. Snapshot.Why puts it in a sentence.
type Refusal struct {
	Invalid string  `json:"invalid,omitempty"` // the gang itself cannot be, and no node was looked at
	Counts  Counts  `json:"counts"`
	Lost    []int32 `json:"lost,omitempty"` // of Swap: the nodes that others were to replace
	Need    int     `json:"need"`           // nodes
	Fit     int     `json:"fit"`            // nodes that pass every test by themselves
}

// refuse counts why g has no place in s.
func refuse(s *Snapshot, g *Gang) *Refusal {
	r := &Refusal{Need: g.Nodes}
	a, err := newAsk(s, g)
	if err != nil {
		r.Invalid = err.Error()
		return r
	}
	for ci := range int32(s.lay.cells()) {
		a.reasons(ci, func(reason Reason, w uint64) { r.Counts[reason] += bits.OnesCount64(w) })
	}
	r.Fit = r.Counts[Apart]
	return r
}

// reasons tells the first reason of each node of cell ci, as bits; Apart for those that pass.
func (a *ask) reasons(ci int32, tell func(Reason, uint64)) {
	b, k := a.s.block(ci)
	c := b.cells[k]
	left := ^uint64(0) >> (cellNodes - len(c.nodes))
	out := func(r Reason, w uint64) {
		if w &= left; w != 0 {
			tell(r, w)
			left &^= w
		}
	}
	out(Unseen, ^b.known[k])
	out(Barred, ^b.open[k])
	for _, set := range a.with {
		out(Outside, ^set.words[ci])
	}
	for _, set := range a.without {
		out(Kept, set.words[ci])
	}
	out(Uncertified, ^b.level[1][k])
	out(Shallow, ^b.level[a.level][k])
	out(Lapsing, ^b.validAt(k, a.until))
	if a.since != 0 {
		old := uint64(0)
		for m := left; m != 0; m &= m - 1 {
			if i := bits.TrailingZeros64(m); c.nodes[i].issued < a.since {
				old |= 1 << i
			}
		}
		out(Old, old)
	}
	pass := a.passes(ci) & left
	// Most of the rest are plainly busy; only those that differ from their neighbours are looked at one by one.
	for m := left &^ pass & (b.odd[k] | a.picky()); m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		out(a.lack(&c.nodes[i]), 1<<i)
	}
	out(Taken, ^pass)
	out(Apart, pass)
}

// picky is all ones when nodes can fail by more than the number of their GPUs.
func (a *ask) picky() uint64 {
	if a.g.Joined > 1 || a.g.Share.Kind != NoShare || a.k >= a.s.stride {
		return ^uint64(0)
	}
	return 0
}

// lack is what an open node with a certificate to the gang's liking lacks.
func (a *ask) lack(n *node) Reason {
	want := a.k
	if a.whole {
		want = max(want, n.shape.GPUs)
	}
	if a.g.Share.Kind != NoShare {
		empty := node{shape: n.shape, free: n.shape.All(), covered: n.shape.All()}
		if !a.fresh().fitsPart(&empty) {
			return Small
		}
		return Taken
	}
	switch {
	case bits.OnesCount32(n.shape.All()&^n.shape.MIG) < want:
		return Small
	case bits.OnesCount32(n.free&^n.shape.MIG) < want:
		return Taken
	case bits.OnesCount32(n.usable()) < want:
		return Uncovered
	}
	return Unlinked
}

// fresh is the ask without the wish for a GPU that is shared already.
func (a *ask) fresh() *ask {
	b := *a
	b.shared = false
	return &b
}
