package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// A Fault is one thing wrong with a policy.
type Fault struct {
	Path    string `json:"path"` // by the file's names, as guard.fleet_hour_share
	Message string `json:"message"`
}

// Validate lists every fault of p, ordered by path; none means that p may be put in force. Whether the ids in
// p.Checks exist is for the catalog to say.
func Validate(p Policy) []Fault {
	v := &validator{}
	v.values(p)
	v.overrides(p)
	return v.sorted()
}

// values checks what p sets itself, its overrides aside.
func (v *validator) values(p Policy) {
	oneOf(v, "mode", p.Mode, Off, Observe, Act)
	v.checks(p.Checks)
	v.inventory(p.Inventory)
	v.rowRemap(p.RowRemap)
	v.retiredPages(p.Retired)
	v.nvlink(p.NVLink)
	v.pcie(p.PCIe)
	v.clocks(p.Clocks)
	v.thermal(p.Thermal)
	v.modes(p.Modes)
	v.xid(p.XID)
	v.aer(p.AER)
	v.hostLog(p.HostLog)
	v.dcgm(p.DCGM, p.Lifecycle.ScreenDeadline)
	v.golden(p.Golden)
	v.bandwidth(p.Bandwidth)
	v.baseline(p.Baseline)
	v.userChecks(p.UserChecks)
	v.host(p)
	v.agent(p.Agent)
	v.hooks(p.Hooks)
	v.certificate(p.Certificate)
	v.guard(p.Guard)
	v.lifecycle(p.Lifecycle)
	v.drill(p.Drill)
	v.lemons(p.Lemons)
}

type validator struct{ faults []Fault }

func (v *validator) add(path, format string, args ...any) {
	v.faults = append(v.faults, Fault{path, fmt.Sprintf(format, args...)})
}

func oneOf[T ~string](v *validator, path string, got T, want ...T) {
	if slices.Contains(want, got) {
		return
	}
	var names []string
	for _, w := range want {
		if w != "" {
			names = append(names, string(w))
		}
	}
	v.add(path, "%q: want one of %v", string(got), names)
}

func atLeast[T cmp.Ordered](v *validator, path string, got, least T) {
	if got < least {
		v.add(path, "%v: want %v or more", got, least)
	}
}

// within wants a duration between least and most, both included.
func (v *validator) within(path string, got Duration, least, most time.Duration) {
	if got.D() < least || got.D() > most {
		v.add(path, "%s: want %s to %s", got, Duration(least), Duration(most))
	}
}

// share wants a number above 0 and not above 1; NaN is neither.
func (v *validator) share(path string, got float64) {
	if !(got > 0 && got <= 1) || math.IsNaN(got) {
		v.add(path, "%v: want a share above 0 and not above 1, as 0.02 for 2 %%", got)
	}
}
