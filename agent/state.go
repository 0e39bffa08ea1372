package agent

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
)

// A State is all that a decision about a hook rests on. It is a value: the same state gives the same decision.
// Times are on the boot clock.
type State struct {
	Now    time.Duration
	BootID string
	Driver string // as last read

	Known   bool     // a desired state has been received at some time
	Managed bool     // false: hooks exit 0, the node is not assay's
	Node    string   // the lifecycle state the control plane gave
	Marks   []string // its marks
	Policy  policy.Policy

	Suite     string     // digest of what a suite of its level is now; empty: not known
	Held      *Held      // the certificate at hand; nil: none
	Tombstone *Tombstone // nil: none
	Snapshot  *Seen      // the last snapshot; nil: none yet in this run
	Kernel    KernelState
	Contact   *time.Duration // when the control plane was last heard; nil: not in this boot
	Golden    int            // golden children that have not ended
	GPUs      []checks.GPU   // what the node should have, by enrolment or by the last snapshot: maps index to UUID
}

// Seen is a snapshot as the fast path sees it.
type Seen struct {
	At    time.Duration // when it was taken
	Clean bool          // it folds to Pass, findings that nothing acts on left aside
	Why   string        // when not clean: what was found
}

// KernelState is how far the kernel log has been read.
type KernelState struct {
	Drained bool          // every record so far has been read and judged
	Records uint64        // read in this run
	Lost    uint64        // overwritten before they were read
	LostAt  time.Duration // when the last loss was seen
	Err     string        // why it is not being read
}

// Acting splits findings into those that may have consequences and those that are only observed.
func Acting(p policy.Policy, fs []checks.Finding) (act, observe []checks.Finding) {
	for _, f := range fs {
		if catalog.Acts(p, f.Check) {
			act = append(act, f)
		} else {
			observe = append(observe, f)
		}
	}
	return act, observe
}

// uuid returns the UUID of the GPU with that index, as the node should be.
func (s State) uuid(index int) (string, bool) {
	for _, g := range s.GPUs {
		if g.Index == index {
			return g.UUID, true
		}
	}
	return "", false
}

// jobUUIDs returns the UUIDs of the job's GPUs. known is false when one cannot be told; then all is every GPU.
func (s State) jobUUIDs(set GPUSet) (uuids []string, known bool) {
	if set.Unknown {
		return s.allUUIDs(), false
	}
	uuids = append(uuids, set.UUIDs...)
	for _, i := range set.Indices {
		u, ok := s.uuid(i)
		if !ok {
			return s.allUUIDs(), false
		}
		uuids = append(uuids, u)
	}
	return uuids, true
}

func (s State) allUUIDs() []string {
	var all []string
	for _, g := range s.GPUs {
		all = append(all, g.UUID)
	}
	return all
}
