package scheduler

import (
	"fmt"
	"math/bits"
	"time"
)

// A Reason is the first thing that keeps a node from a gang.
type Reason uint8

const (
	Unseen      Reason = iota // in the topology, but nobody has told of it
	Barred                    // lost, held, drained, quarantined …
	Outside                   // not in the partition or among the nodes the gang may use
	Kept                      // reserved for others, now or before the gang's limit
	Uncertified               // no certificate
	Shallow                   // certified at a lower level
	Old                       // certified too long ago
	Lapsing                   // its certificate does not hold long enough
	Small                     // fewer GPUs than it takes, whatever is free
	Uncovered                 // GPUs free, but not all certified
	Taken                     // GPUs are taken
	Unlinked                  // GPUs free, but NVLink does not join them
	Apart                     // it would do, but not together with enough others
	reasons
)

// A Refusal is why a gang has no place: how many nodes each first reason kept out, and what was lacking.
type Refusal struct {
	Invalid string       `json:"invalid,omitempty"` // the gang itself cannot be
	Counts  [reasons]int `json:"-"`
	Fit     int          `json:"fit"` // nodes that pass every test by themselves
	Need    int          `json:"need"`
}

// refuse counts why g has no place in s.
func refuse(s *Snapshot, g *Gang) *Refusal {
	r := &Refusal{Need: g.Nodes}
	a, err := newAsk(s, g)
	if err != nil {
		r.Invalid = err.Error()
		return r
	}
	for ci, c := range s.cells {
		left := ^uint64(0) >> (cellNodes - len(c.nodes))
		out := func(reason Reason, bits_ uint64) {
			r.Counts[reason] += bits.OnesCount64(left & bits_)
			left &^= bits_
		}
		out(Unseen, ^c.known)
		out(Barred, ^c.open)
		for _, set := range a.with {
			out(Outside, ^set.words[ci])
		}
		for _, set := range a.without {
			out(Kept, set.words[ci])
		}
		out(Uncertified, ^c.level[1])
		out(Shallow, ^c.level[a.level])
		out(Lapsing, ^c.validAt(a.until))
		out(Taken, ^a.passes(int32(ci)))
		r.Fit += bits.OnesCount64(left)
	}
	r.Counts[Apart] = r.Fit
	return r
}

// why says why node i does not pass.
func (a *ask) why(i int32) string {
	n := a.s.node(i)
	switch {
	case n.shape == nil:
		return "nobody has told of the node"
	case n.bar != nil:
		return n.bar.Why
	case n.level < a.level:
		return fmt.Sprintf("certified at %q, and %s is needed", n.level, a.level)
	case n.expires < a.until:
		return fmt.Sprintf("its certificate ends %s", time.Unix(n.expires, 0).UTC().Format(time.RFC3339))
	}
	return "GPUs are taken"
}
