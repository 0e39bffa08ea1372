package catalog

import (
	"slices"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// A Check is what one check is, in words and in the policy values that it reads.
type Check struct {
	ID         string
	Title      string         // in a few words
	Doc        string         // what it judges and why, for check explain
	Unit       string         // of what it reads
	Source     string         // where the reading, and the rule, are from
	Applies    string         // the hardware and drivers it can judge
	Thresholds []Threshold    // the policy values it reads
	Action     string         // what its faults ask for
	Cost       string         // in driver calls and time
	Suites     []checks.Level // the suites it is part of; none for a check of events
	Revision   int            // rises when the rule changes, so that older certificates do not speak for it
	Neighbours Neighbours     // how others treat the same signal
}

// Neighbours says in a few words how other tools judge what a check judges: by what signal and threshold, and what they
// ask for. "none" where they do not look at it. Sources: mej/nhc with the profiles of Azure/azurehpc-health-checks,
// leptonai/gpud, NVIDIA/NVSentinel, and DCGM's passive health watches, as each stood in 2026.
type Neighbours struct {
	NHC, Gpud, NVSentinel, DCGM string
}

// A Threshold is one policy value that a check reads.
type Threshold struct {
	Path  string // in the policy file, as ecc.max_volatile_uncorrected
	Value func(policy.Policy) any
}

var everySuite = []checks.Level{checks.QuickMIG, checks.Quick, checks.Standard, checks.Soak, checks.Intake}

// All gives every check in run order. A check of events is in no suite: a quiet log proves nothing.
func All() []Check {
	return slices.Concat(
		driverChecks(),
		inventoryChecks(),
		recoveryChecks(),
		rowremapChecks(),
		eccChecks(),
		gpuState(),
		userChecks(),
		hostChecks(),
		dcgmChecks(), // only when asked for: in no suite
		sdcChecks(),  // likewise
		bandwidthChecks(),
		leftoverChecks(), // at a job's end
		xidChecks(),      // from here on the kernel log's: they are in no suite, and stand last
		nvrmChecks(),
		aerChecks(),
		nicChecks(),
		hostlogChecks(),
	)
}

// Lookup gives a check by id.
func Lookup(id string) (Check, bool) {
	all := All()
	i := slices.IndexFunc(all, func(c Check) bool { return c.ID == id })
	if i < 0 {
		return Check{}, false
	}
	return all[i], true
}

// IDs gives the ids of all checks in run order.
func IDs() []string {
	var out []string
	for _, c := range All() {
		out = append(out, c.ID)
	}
	return out
}

// Acts reports whether anything may be done about a check's findings.
func Acts(p policy.Policy, id string) bool { return p.ModeOf(id) == policy.Act }

// runs reports whether the check judges at all.
func runs(p policy.Policy, id string) bool { return p.ModeOf(id) != policy.Off }
