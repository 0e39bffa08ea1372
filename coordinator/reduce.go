package coordinator

import (
	"cmp"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
)

// reduce turns a report into the events it amounts to, in the order they must be applied: who the node is, then hard
// faults severest first, then soft ones, then what waits for a reset, and last the end of the suite. Whether a check may
// act is for the state machine to say: in observe mode it notes what would have been done. It is pure.
func reduce(r checks.Report, ownGPU bool, p policy.Policy, at time.Time) []lifecycle.Event {
	when := lifecycle.At{Time: at}
	var evs []lifecycle.Event
	if r.Inventory.BootID != "" {
		evs = append(evs, lifecycle.Seen{At: when, Inventory: r.Inventory})
	}

	var hard, soft []checks.Finding
	for _, f := range r.Findings {
		switch {
		case f.HardFault():
			hard = append(hard, f)
		case f.SoftFault():
			soft = append(soft, f)
		}
	}
	slices.SortStableFunc(hard, func(a, b checks.Finding) int { return int(b.Action) - int(a.Action) })
	for _, f := range hard {
		evs = append(evs, lifecycle.HardFault{At: when, Finding: f, Job: r.Job, OwnGPU: ownGPU})
	}
	for _, f := range soft {
		evs = append(evs, lifecycle.SoftFault{At: when, Finding: f, Job: r.Job})
	}
	for _, f := range r.Findings {
		if f.Verdict == checks.Pass && f.Action == checks.ResetGPU {
			evs = append(evs, lifecycle.ResetWanted{At: when, Finding: f})
		}
	}
	if r.Suite != checks.NoLevel {
		evs = append(evs, lifecycle.Screened{
			At: when, Screen: r.Screen, Why: r.Why, Level: r.Suite, Verdict: r.Verdict,
			Tested: r.Tested, NotTested: r.NotTested, Suite: cmp.Or(r.Digest, catalog.Digest(r.Suite, p)), Stale: int(r.Stale),
			Inventory: r.Inventory, Findings: slices.Concat(hard, soft),
		})
	}
	return evs
}

// faultsMost is how many faults of one report become events. The severest come first; the rest say nothing that these do
// not, and a transaction must stay within etcd's limits.
const faultsMost = 16

// bounded keeps the first faultsMost faults among the events and says how many it left out. It is pure.
func bounded(evs []lifecycle.Event) (kept []lifecycle.Event, more int) {
	faults := 0
	for _, ev := range evs {
		switch ev.(type) {
		case lifecycle.HardFault, lifecycle.SoftFault, lifecycle.ResetWanted:
			if faults++; faults > faultsMost {
				more++
				continue
			}
		}
		kept = append(kept, ev)
	}
	return kept, more
}
