package policy

import (
	"math"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// Memory holds the limits of package memory.
type Memory struct {
	Bytes          uint64  `json:"bytes" yaml:"bytes"`                     // MemTotal a node should have; 0: the most it has shown
	Tolerance      float64 `json:"tolerance" yaml:"tolerance"`             // share of that which may be missing
	MaxUncorrected uint64  `json:"max_uncorrected" yaml:"max_uncorrected"` // errors of one module in a boot; more is a soft Fail, drain
	Corrected      Limit   `json:"corrected" yaml:"corrected"`             // errors of one module (10 in 24 h: mcelog.conf); its strikes are not used
}

// defaultMemory: firmware keeps more or less for itself from boot to boot, but not 2 %; one module of 32 is 3 %.
func defaultMemory() Memory {
	return Memory{Tolerance: 0.02, MaxUncorrected: 0, Corrected: Limit{Max: 10, Within: 24 * Duration(time.Hour), Action: "watch"}}
}

func (v *validator) memory(m Memory) {
	if !(m.Tolerance >= 0 && m.Tolerance < 1) || math.IsNaN(m.Tolerance) {
		v.add("memory.tolerance", "%v: want a share from 0 to below 1, as 0.02 for 2 %%", m.Tolerance)
	}
	v.within("memory.corrected.within", m.Corrected.Within, time.Second, 30*day)
	oneOf(v, "memory.corrected.action", m.Corrected.Action, checks.Watch.String(), checks.Drain.String())
	if m.Corrected.Strikes != 0 {
		v.add("memory.corrected.strikes", "%d: want 0; modules have no strikes", m.Corrected.Strikes)
	}
}
