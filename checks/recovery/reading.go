// Package recovery judges the driver's own verdict on a GPU: the NVML recovery action (field 230), the same fact
// that XID 154 announces in the kernel log. It outranks what a log line or a code number suggests.
package recovery

import "github.com/assay-gpu/assay/checks"

// A Reading is one GPU's recovery action from nvmlDeviceGetFieldValues, field NVML_FI_DEV_GET_GPU_RECOVERY_ACTION.
type Reading struct {
	Have   checks.Availability `json:"have"`
	Err    string              `json:"err,omitempty"`
	Action int                 `json:"action"` // 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset; others are not known to us
}
