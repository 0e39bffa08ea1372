// Package counter compares a device's error counter with what it stood at before.
//
// A counter alone says little: it has counted since the driver was loaded, or for the board's life. What is judged is by
// how much it rose, over a time that is known. A counter that was not read, that has no earlier reading, that fell or that
// has reached the end of its range has no rate, and says why: gpud #943 took 255, 65535 and 2³²−1 for error counts.
package counter

import (
	"fmt"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// A Reading is one counter now and, where there is one, as it was read earlier in the same boot.
type Reading struct {
	Have checks.Availability `json:"have"`
	Now  uint64              `json:"now"`
	Then *uint64             `json:"then,omitempty"` // nil: no earlier reading
}

// Of is a counter that was read.
func Of(now uint64) Reading { return Reading{Have: checks.Read, Now: now} }

// After gives the reading with what it stood at before.
func (r Reading) After(then Reading) Reading {
	r.Then = nil
	if r.Have == checks.Read && then.Have == checks.Read {
		n := then.Now
		r.Then = &n
	}
	return r
}

// Plus adds up two counters of one thing. A saturated one stands for both: the sum would hide it.
func (r Reading) Plus(o Reading) Reading {
	switch {
	case o.Have == checks.NotSupported, r.Saturated():
		return r
	case r.Have == checks.NotSupported, o.Saturated(), o.Have != checks.Read:
		return o
	case r.Have != checks.Read:
		return r
	}
	return Of(r.Now + o.Now)
}

// ends are where counters of 8, 16, 32 and 64 bits stop.
var ends = [...]uint64{1<<8 - 1, 1<<16 - 1, 1<<32 - 1, 1<<64 - 1}

// Saturated reports whether the counter stands at the end of a register's range and did not move since the earlier
// reading: it may have counted more than it shows.
func (r Reading) Saturated() bool {
	if r.Have != checks.Read || r.Then != nil && *r.Then != r.Now {
		return false
	}
	for _, e := range ends {
		if r.Now == e {
			return true
		}
	}
	return false
}

// Rise says by how much the counter rose; why is not empty when that is not known.
func (r Reading) Rise() (by uint64, why string) {
	switch {
	case r.Have == checks.NotSupported:
		return 0, "not counted by this GPU"
	case r.Have != checks.Read:
		return 0, "not read"
	case r.Saturated():
		return 0, fmt.Sprintf("saturated at %d: it counts no further", r.Now)
	case r.Then == nil:
		return 0, "no earlier reading"
	case r.Now < *r.Then:
		return 0, fmt.Sprintf("fell from %d to %d: it was reset", *r.Then, r.Now)
	}
	return r.Now - *r.Then, ""
}

// Rate is a rise over a time, per unit of time; 0 where no time passed.
func Rate(by uint64, over, unit time.Duration) float64 {
	if over <= 0 {
		return 0
	}
	return float64(by) * float64(unit) / float64(over)
}

// Share is the part of a time that a counter of nanoseconds rose by: from 0 to 1.
func Share(by uint64, over time.Duration) float64 {
	return min(1, Rate(by, over, 1))
}
