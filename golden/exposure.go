package golden

import (
	"cmp"
	"slices"

	"github.com/assay-gpu/assay/golden/kernels"
)

// AtSpeed is the share of the highest SM clock from which on time counts as exposure: a path that is too slow by a little
// shows at the highest clock only. Golden rule 18.
const AtSpeed = 0.9

// beyond is the share of the highest clock above which two counters contradict each other: one of them is not to be trusted.
const beyond = 1.1

// An Exposure is how long a kernel has had the SMs under load. The zero value: not at all, or not told.
type Exposure struct {
	Seconds float64 `json:"seconds"`       // of the device's timer, a mean over the GPU's SMs
	AtSpeed float64 `json:"at_speed"`      // of those, the ones with the SM clock at AtSpeed of its highest or more
	MHz     float64 `json:"mhz,omitempty"` // SM clock of the slowest block
}

// Expose is what one block adds that ran so many cycles of its SM's clock in so many nanoseconds, on one of sms SMs whose
// clock is maxMHz at the highest. Where that is not known, or the timer did not move, no time counts as at speed.
func Expose(cycles, nanoseconds uint64, sms, maxMHz int) Exposure {
	if nanoseconds == 0 || sms < 1 {
		return Exposure{}
	}
	e := Exposure{Seconds: float64(nanoseconds) / 1e9 / float64(sms), MHz: float64(cycles) / float64(nanoseconds) * 1000}
	if share := e.MHz / float64(maxMHz); maxMHz > 0 && share >= AtSpeed && share <= beyond {
		e.AtSpeed = e.Seconds
	}
	return e
}

// Plus adds up two.
func (e Exposure) Plus(o Exposure) Exposure {
	slowest := min(e.MHz, o.MHz)
	if e.MHz == 0 || o.MHz == 0 {
		slowest = e.MHz + o.MHz
	}
	return Exposure{e.Seconds + o.Seconds, e.AtSpeed + o.AtSpeed, slowest}
}

// A UnitExposure is the exposure of one unit by all kernels that test it.
type UnitExposure struct {
	Unit string
	Exposure
}

// Exposures adds up a result's exposure by unit, sorted by name. Programs of a corpus, which mix units, are one of their own.
func Exposures(r Result) []UnitExposure {
	sums := map[string]Exposure{}
	for _, s := range r.Stages {
		if s.Exposure == (Exposure{}) {
			continue
		}
		unit := "corpus"
		if k, ok := kernels.Lookup(s.Kernel); ok {
			unit = k.Unit
		}
		sums[unit] = sums[unit].Plus(s.Exposure)
	}
	var out []UnitExposure
	for u, e := range sums {
		out = append(out, UnitExposure{u, e})
	}
	slices.SortFunc(out, func(a, b UnitExposure) int { return cmp.Compare(a.Unit, b.Unit) })
	return out
}
