// Package fabric judges whether a GPU has joined the NVLink fabric that the fabric manager sets up, and how that fabric is.
//
// Without it every multi-GPU job on an NVSwitch node fails at its start. Registration takes a while after boot, so a GPU
// that has not joined is a fault only when it still has not at a later reading.
package fabric

import (
	"time"

	"github.com/assay-gpu/assay/checks"
)

// A Reading is one GPU's place in the fabric. Source: nvmlDeviceGetGpuFabricInfoV, version 3 or, from an older driver, 2.
type Reading struct {
	Have    checks.Availability `json:"have"`
	Err     string              `json:"err,omitempty"`
	State   State               `json:"state"`
	Status  int                 `json:"status,omitempty"`  // the registration's return code once it is complete; 0: success
	Health  uint32              `json:"health,omitempty"`  // NVML_GPU_FABRIC_HEALTH_MASK_*
	Summary int                 `json:"summary,omitempty"` // NVML_GPU_FABRIC_HEALTH_SUMMARY_*; 0: not told
	Before  *State              `json:"before,omitempty"`  // at the earlier reading; nil without one
	Over    time.Duration       `json:"over,omitempty"`
}

// A State is how far registration has come, by NVML's numbers.
type State int

const (
	NoFabric   State = 0 // not supported
	NotStarted State = 1
	InProgress State = 2
	Completed  State = 3
)
