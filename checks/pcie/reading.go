// Package pcie judges a GPU's PCIe link: its width always, its speed under load only, and how often it must repeat itself.
//
// A link that trained narrow halves the bandwidth and no counter tells (NVSentinel #1826; Imbue found it on 25 % of hosts at
// bring-up); gpud does not look at all. Speed is lowered at rest to save power, so it is judged only while the GPU is busy,
// twice in a row. Replays and corrected errors happen on healthy links: what counts is their rate against the bit error
// rate that PCIe allows, 1e-12.
package pcie

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/counter"
)

// A Reading is one GPU's link to its PCIe port. Sources: sysfs bus/pci/devices, pcie capability files and
// aer_dev_*; nvmlDeviceGetUtilizationRates; nvmlDeviceGetFieldValues, NVML_FI_DEV_PCIE_REPLAY_COUNTER.
type Reading struct {
	Have    checks.Availability `json:"have"` // width and speed
	Err     string              `json:"err,omitempty"`
	Width   int                 `json:"width,omitempty"` // lanes now
	Gen     int                 `json:"gen,omitempty"`   // 1 to 6, by speed, now
	Most    End                 `json:"most"`            // what the GPU can do
	Port    End                 `json:"port"`            // what the port it sits in can do; zero: not known
	Busy    checks.Availability `json:"busy"`
	Percent int                 `json:"percent,omitempty"` // of the last sample that kernels ran
	Before  *Moment             `json:"before,omitempty"`  // speed and load at the earlier reading; nil without one

	Replays     counter.Reading `json:"replays"`     // since the driver was loaded
	Correctable counter.Reading `json:"correctable"` // AER, since boot
	NonFatal    counter.Reading `json:"nonfatal"`    // AER, uncorrectable but not fatal, since boot
	Fatal       counter.Reading `json:"fatal"`       // AER, since boot
	Over        time.Duration   `json:"over,omitempty"`

	HaveACS checks.Availability `json:"have_acs"`      // NotSupported in a virtual machine, or where no bridge has it
	ACS     []string            `json:"acs,omitempty"` // bridges above the GPU that redirect requests, by address
}

// An End is what one end of a link can do.
type End struct {
	Width int `json:"width,omitempty"` // lanes
	Gen   int `json:"gen,omitempty"`
}

// A Moment is how fast a link ran, and how busy its GPU was.
type Moment struct {
	Gen     int `json:"gen"`
	Percent int `json:"percent"`
}

// want is what both ends can do: 0 where neither is known.
func want(a, b int) int {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}

// slow reports whether the link ran below what both ends can do while the GPU was busy.
func (r Reading) slow(m Moment, busy int) bool {
	return m.Percent >= busy && m.Gen > 0 && m.Gen < want(r.Most.Gen, r.Port.Gen)
}
