package dcgm

import "github.com/assay-gpu/assay/checks"

// A ruling is what follows from one error.
type ruling struct {
	verdict checks.Verdict
	action  checks.Action
	hard    bool
	why     string // said after the error's text; may be empty
}

// own are the codes for which DCGM's severity alone would decide wrongly. What a code means does not change between
// generations; a number is never given to another error.
var own = map[int]ruling{
	// A GPU that is gone, and what the driver itself asks for: as checks driver and recovery say.
	120: {checks.Fail, checks.Reboot, true, "the GPU is lost"},                  // FALLEN_OFF_BUS
	125: {checks.Fail, checks.ResetGPU, true, "the driver asks for a reset"},    // GPU_RECOVERY_RESET
	126: {checks.Fail, checks.Reboot, true, "the driver asks for a reboot"},     // GPU_RECOVERY_REBOOT
	127: {checks.Fail, checks.Drain, false, "the driver asks to drain traffic"}, // GPU_RECOVERY_DRAIN_P2P
	128: {checks.Fail, checks.ResetGPU, true, "the driver asks for a reset"},    // GPU_RECOVERY_DRAIN_RESET
	81:  {checks.Fail, checks.ResetGPU, true, "as XID 95"},                      // UNCONTAINED_ERROR

	// DCGM says reset; a remap that failed is not healed by one. Source: NVIDIA, "GPU Memory Error Management".
	80: {checks.Fail, checks.RMA, true, "a failed remap is grounds for RMA"}, // ROW_REMAP_FAILURE

	// Safe to compute on until the next reset, as check rowremap says.
	6:  {checks.Pass, checks.ResetGPU, false, "takes effect at the next reset"}, // PENDING_PAGE_RETIREMENTS
	83: {checks.Pass, checks.ResetGPU, false, "takes effect at the next reset"}, // DBE_PENDING_PAGE_RETIREMENTS
	85: {checks.Pass, checks.ResetGPU, false, "takes effect at the next reset"}, // PENDING_ROW_REMAP

	// A service or another program is at fault, not the GPU. Source: eks-node-monitoring-agent 63.
	25:  {checks.Fail, checks.FixConfig, false, "another program draws on the GPU"}, // GRAPHICS_PROCESSES
	122: {checks.Fail, checks.FixConfig, false, "a service, not the GPU"},           // IMEX_UNHEALTHY

	// Not tested.
	47:  {checks.Unknown, checks.None, false, "not tested"}, // ABORTED
	48:  {checks.Unknown, checks.None, false, "not tested"}, // TEST_DISABLED
	68:  {checks.Unknown, checks.None, false, "not tested"}, // CONCURRENT_GPUS
	82:  {checks.Unknown, checks.None, false, "not tested"}, // EMPTY_GPU_LIST
	117: {checks.Unknown, checks.None, false, "not tested"}, // TEST_SKIPPED
	130: {checks.Unknown, checks.None, false, "not tested"}, // RETEST_REQUESTED
	60:  {checks.NotApplicable, checks.None, false, ""},     // ECC_UNSUPPORTED
	78:  {checks.NotApplicable, checks.None, false, ""},     // L1TAG_UNSUPPORTED
}

// rule says what follows from an error of a test, or of a health watch, that ended with the status.
//
// The severity is the error's own and, where it has none, the table's. A severity that asks for something outranks a test
// that says it passed. Errors of the tool itself, and those of which DCGM says no more than that they happened, leave the
// verdict open: they are no evidence either way (containers-roadmap 2555: a host engine out of reach got nodes replaced).
func rule(e Error, s Status) ruling {
	if r, ok := own[e.Code]; ok {
		return r
	}
	severity, category := e.Severity, Category(e.Category)
	if m, ok := Means(e.Code); ok && e.Code > 0 {
		if severity == Unsaid {
			severity = m.Severity
		}
		if e.Category < 0 {
			category = m.Category
		}
	}
	switch severity {
	case Isolate:
		return ruling{checks.Fail, checks.Drain, false, ""}
	case Reset:
		return ruling{checks.Fail, checks.ResetGPU, false, ""}
	case Config:
		if s == Failed {
			return ruling{checks.Fail, checks.FixConfig, false, ""}
		}
		return ruling{checks.Pass, checks.FixConfig, false, "a setting, not the hardware"}
	case Monitor:
		if s == Failed {
			return ruling{checks.Unknown, checks.Watch, false, "DCGM says to watch it"}
		}
		return ruling{checks.Pass, checks.Watch, false, "DCGM says to watch it"}
	case Unsure:
		return ruling{checks.Unknown, checks.Watch, false, "DCGM does not know what it means"}
	case Triage:
		if s == Failed && !category.tool() {
			return ruling{checks.Fail, checks.Drain, false, ""}
		}
		if category.tool() {
			return ruling{checks.Unknown, checks.Watch, false, "the tool's own trouble, not the GPU's"}
		}
		return ruling{checks.Unknown, checks.Watch, false, "to be looked into"}
	}
	if s == Failed {
		return ruling{checks.Fail, checks.Drain, false, ""}
	}
	return ruling{checks.Unknown, checks.Watch, false, ""}
}
