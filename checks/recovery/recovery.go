package recovery

import (
	"fmt"

	"github.com/assay-gpu/assay/checks"
)

// ID is the check's catalog id.
const ID = "recovery"

// The driver's verdicts, as nvmlDeviceGpuRecoveryAction_t and the text of XID 154 number them.
const (
	Nothing       = 0 // NVML_GPU_RECOVERY_ACTION_NONE
	Reset         = 1 // NVML_GPU_RECOVERY_ACTION_GPU_RESET
	Reboot        = 2 // NVML_GPU_RECOVERY_ACTION_NODE_REBOOT
	DrainP2P      = 3 // NVML_GPU_RECOVERY_ACTION_DRAIN_P2P
	DrainAndReset = 4 // NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET
	RecoverIMEX   = 5 // of newer drivers (kubernetes-sigs/dra-driver-nvidia-gpu 1441): named, and nothing concluded from it
)

// Asks gives what the driver's verdict asks for, whether it is a hard fault, and the verdict's name. A value that NVIDIA
// has added since is not known: nothing may be concluded from it, in either direction.
func Asks(value int) (action checks.Action, hard bool, name string, known bool) {
	switch value {
	case Nothing:
		return checks.None, false, "none", true
	case Reset:
		return checks.ResetGPU, true, "reset the GPU", true
	case Reboot:
		return checks.Reboot, true, "reboot the node", true
	case DrainP2P:
		return checks.Drain, false, "drain peer-to-peer traffic", true
	case DrainAndReset:
		return checks.ResetGPU, true, "drain, then reset the GPU", true
	case RecoverIMEX:
		return checks.Watch, false, "recover the IMEX domain", false
	}
	return checks.Watch, false, "", false
}

// Judge turns a reading into a finding. It does no I/O.
func Judge(gpu checks.GPU, r Reading) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
	switch r.Have {
	case checks.NotSupported:
		f.Verdict, f.Reason = checks.NotApplicable, "this driver has no recovery action to read"
		return f
	case checks.Read:
	default:
		f.Reason = unread(r.Err)
		return f
	}
	f.Evidence = fmt.Sprintf("recovery_action=%d", r.Action)
	action, hard, name, known := Asks(r.Action)
	f.Action = action
	switch {
	case !known && name != "":
		f.Reason = fmt.Sprintf("the driver asks to %s (recovery action %d): a person has to look", name, r.Action)
	case !known:
		f.Reason = fmt.Sprintf("the driver asks for recovery action %d, which is not known here", r.Action)
	case action == checks.None:
		f.Verdict, f.Reason = checks.Pass, "the driver asks for no recovery"
	default:
		f.Verdict, f.Hard = checks.Fail, hard
		f.Reason = fmt.Sprintf("the driver asks to %s (recovery action %d)", name, r.Action)
	}
	return f
}

func unread(why string) string {
	if why == "" {
		return "recovery action not read"
	}
	return "recovery action not read: " + why
}
