// Package clocks judges why a GPU runs below the clocks it could: heat and power brakes, which are faults of cooling and
// supply, and nothing of what is by design, such as idling or a power cap.
//
// A slowdown by hardware halves the clocks at least, and every rank of a job waits for the slowest GPU. It is judged by
// the share of time it held since an earlier reading, where the driver counts that; a bit that is set at one moment is no
// more than that. Neighbours: gpud wants 6 of 10 readings a minute apart with a hardware slowdown; Azure's healthagent
// takes any of 0xE8 at any moment for an error; NVSentinel maps them to no action.
package clocks

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/counter"
)

// A Reading is one GPU's clock event reasons. Sources: nvmlDeviceGetCurrentClocksEventReasons (before R535:
// …ThrottleReasons); nvmlDeviceGetFieldValues, NVML_FI_DEV_CLOCKS_EVENT_REASON_* and NVML_FI_DEV_PERF_POLICY_THERMAL.
type Reading struct {
	Have    checks.Availability      `json:"have"`
	Err     string                   `json:"err,omitempty"`
	Reasons Reasons                  `json:"reasons"`          // now
	Before  *Reasons                 `json:"before,omitempty"` // at the earlier reading; nil without one
	Over    time.Duration            `json:"over,omitempty"`   // since the earlier reading
	Held    map[Name]counter.Reading `json:"held,omitempty"`   // nanoseconds each reason held since the driver was loaded, where it is counted
}

// Reasons is a set of clock event reasons, by NVML's bits.
type Reasons uint64

const (
	Idle              Reasons = 1 << 0
	ApplicationClocks Reasons = 1 << 1
	SWPowerCap        Reasons = 1 << 2
	HWSlowdown        Reasons = 1 << 3 // set with either of the two below, or for a fast power event alone
	SyncBoost         Reasons = 1 << 4
	SWThermal         Reasons = 1 << 5
	HWThermal         Reasons = 1 << 6
	PowerBrake        Reasons = 1 << 7 // the power supply asked for it
)

// A Name is a reason that is judged.
type Name string

// The reasons that are judged.
const (
	NameHWThermal  Name = "hw_thermal"
	NamePowerBrake Name = "power_brake"
	NameHWSlowdown Name = "hw_slowdown"
	NameSWThermal  Name = "sw_thermal"
)
