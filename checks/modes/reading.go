// Package modes judges how GPUs and driver are set up: what a person or a script changed, not what broke.
package modes

import "github.com/assay-gpu/assay/checks"

// A Reading is one GPU's settings. Sources: nvmlDeviceGetPersistenceMode, nvmlDeviceGetComputeMode, nvmlDeviceGetMigMode.
type Reading struct {
	HavePersistence checks.Availability `json:"have_persistence"`
	Persistence     bool                `json:"persistence,omitempty"`
	HaveCompute     checks.Availability `json:"have_compute"`
	Compute         Compute             `json:"compute,omitempty"`
	HaveMIG         checks.Availability `json:"have_mig"`
	MIG             bool                `json:"mig,omitempty"`
	MIGPending      bool                `json:"mig_pending,omitempty"` // the mode after the next reset
	Err             string              `json:"err,omitempty"`         // of the last call that failed
}

// A Compute is a compute mode, by NVML's numbers.
type Compute int

const (
	Default          Compute = 0
	ExclusiveThread  Compute = 1 // gone since CUDA 8
	Prohibited       Compute = 2 // no process may compute
	ExclusiveProcess Compute = 3
)

var computeNames = []string{"default", "exclusive_thread", "prohibited", "exclusive_process"}

// A Software is what versions the driver's two halves say they are. Source: nvmlInit_v2, nvmlSystemGetDriverVersion,
// nvmlSystemGetNVMLVersion.
type Software struct {
	Driver   string `json:"driver,omitempty"`   // kernel driver, as 550.54.15
	Library  string `json:"library,omitempty"`  // as 12.550.54.15; empty: not told
	Mismatch bool   `json:"mismatch,omitempty"` // nvmlInit refused to work with the kernel driver
}
