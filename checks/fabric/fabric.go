package fabric

import (
	"fmt"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// ID is the check's catalog id.
const ID = "fabric"

// A field is a part of the health mask: where it is and what its values mean. Source: nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*.
type field struct {
	shift, width uint32
	value        uint32
	text         string
	action       checks.Action // Watch leaves a Pass
}

var fields = []field{
	{0, 0x3, 1, "bandwidth is degraded", checks.Drain},
	{2, 0x3, 1, "a route is being recovered", checks.Watch},
	{4, 0x3, 1, "a route is unhealthy", checks.Drain},
	{6, 0x3, 1, "recovering from an access timeout", checks.Watch},
	{8, 0xf, 2, "configured with a wrong system GUID", checks.FixConfig},
	{8, 0xf, 3, "configured with a wrong chassis serial", checks.FixConfig},
	{8, 0xf, 4, "no partition is assigned", checks.FixConfig},
	{8, 0xf, 5, "too few NVLinks", checks.FixConfig},
	{8, 0xf, 6, "GPU firmware is incompatible", checks.FixConfig},
	{8, 0xf, 7, "the GPU's location is invalid", checks.FixConfig},
	{8, 0xf, 8, "the GPU's state is invalid", checks.FixConfig},
	{14, 0x3, 2, "the global fabric manager is disconnected", checks.Watch},
}

// Judge turns a reading into a finding. It does no I/O. The faults are soft: they are the fabric's, and a job on one GPU
// runs on.
func Judge(gpu checks.GPU, r Reading) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
	switch {
	case r.Have == checks.NotSupported, r.Have == checks.Read && r.State == NoFabric:
		f.Verdict, f.Reason = checks.NotApplicable, "this GPU is in no fabric"
		return f
	case r.Have != checks.Read:
		f.Reason = "fabric state not read"
		if r.Err != "" {
			f.Reason += ": " + r.Err
		}
		return f
	}
	f.Evidence = fmt.Sprintf("state=%d status=%d health=%#x summary=%d", r.State, r.Status, r.Health, r.Summary)
	switch {
	case r.State == NotStarted || r.State == InProgress:
		f.Reason = "the GPU has not joined the fabric yet"
		if r.Before != nil && *r.Before != Completed && *r.Before != NoFabric {
			f.Verdict, f.Action = checks.Fail, checks.FixConfig
			f.Reason = fmt.Sprintf("the GPU has not joined the fabric, nor had it %s ago: look at the fabric manager", r.Over.Round(time.Second))
		}
		return f
	case r.State != Completed:
		f.Reason = fmt.Sprintf("fabric state %d is not known", r.State)
		return f
	case r.Status != 0:
		f.Verdict, f.Action = checks.Fail, checks.FixConfig
		f.Reason = fmt.Sprintf("joining the fabric failed with NVML error %d", r.Status)
		return f
	}
	var faults, watch []string
	for _, x := range fields {
		if r.Health>>x.shift&x.width != x.value {
			continue
		}
		if x.action == checks.Watch {
			watch = append(watch, x.text)
			continue
		}
		f.Action = max(f.Action, x.action)
		faults = append(faults, x.text)
	}
	if r.Summary == 2 && len(faults) == 0 { // unhealthy, and nothing above says why
		f.Action = checks.Drain
		faults = append(faults, "the driver calls it unhealthy")
	}
	if r.Summary == 3 && len(faults) == 0 {
		watch = append(watch, "its capacity is limited")
	}
	switch {
	case len(faults) > 0:
		f.Verdict, f.Reason = checks.Fail, "fabric: "+strings.Join(faults, "; ")
	case len(watch) > 0:
		f.Verdict, f.Action, f.Reason = checks.Pass, checks.Watch, "fabric: "+strings.Join(watch, "; ")
	default:
		f.Verdict, f.Reason = checks.Pass, "joined the fabric"
	}
	return f
}
