package ecc

import (
	"fmt"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/policy"
)

// ID is the check's catalog id.
const ID = "ecc"

// Judge turns a reading into a finding. It does no I/O. A counter that was not read is never taken for zero.
//
// None of its faults is hard: an uncorrectable error that harms the GPU comes with the driver's own verdict, which the
// recovery check reads. Aggregate counters are shown and not judged, since they never go down. The limit on corrected
// errors is from facebookresearch/gcm; the SRAM threshold is the driver's, NVIDIA "GPU Memory Error Management".
//
// Failing memory shows under load: 4,600 corrected errors a second and more, with no XID and no uncorrected error
// (NVSentinel #1748). So their rise within the last hour is judged too. A quiet hour on an idle GPU proves little.
func Judge(gpu checks.GPU, r Reading, p policy.ECC) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
	switch r.Have {
	case checks.NotSupported:
		f.Verdict, f.Reason = checks.NotApplicable, "this GPU has no ECC"
		return f
	case checks.Read:
	default:
		f.Reason = "ECC state not read"
		if r.Err != "" {
			f.Reason += ": " + r.Err
		}
		return f
	}
	f.Evidence = evidence(r)
	if !r.Enabled {
		f.Verdict, f.Reason = checks.NotApplicable, "ECC is off, which policy allows"
		if p.RequireEnabled {
			f.Verdict, f.Action, f.Reason = checks.Fail, checks.FixConfig, "ECC is off"
		}
		if r.Pending {
			f.Reason += "; it comes on with the next GPU reset"
		}
		return f
	}

	var reasons []string
	fault := func(a checks.Action, format string, args ...any) {
		f.Verdict, f.Action = checks.Fail, max(f.Action, a)
		reasons = append(reasons, fmt.Sprintf(format, args...))
	}
	if r.HaveSRAM == checks.Read && r.SRAMThresholdExceeded {
		fault(checks.RMA, "SRAM errors beyond the driver's threshold for replacement")
	}
	if r.VolatileUncorrected > p.MaxVolatileUncorrected {
		fault(checks.ResetGPU, "%d uncorrected errors since the driver was loaded, more than %d", r.VolatileUncorrected, p.MaxVolatileUncorrected)
	}
	if r.VolatileCorrected > p.MaxVolatileCorrected {
		fault(checks.Drain, "%d corrected errors since the driver was loaded, more than %d", r.VolatileCorrected, p.MaxVolatileCorrected)
	}
	now := counter.Reading{Have: checks.Read, Now: r.VolatileCorrected, Then: r.CorrectedThen}
	rise, why := now.Rise()
	if rise > p.MaxCorrectedPerHour {
		fault(checks.Drain, "%d corrected errors in the last %s, more than %d", rise, r.Over.Round(time.Second), p.MaxCorrectedPerHour)
	}
	switch {
	case len(reasons) > 0:
		f.Reason = strings.Join(reasons, "; ")
	case r.HaveSRAM == checks.Unread:
		f.Reason = "SRAM error threshold not read"
	default:
		f.Verdict = checks.Pass
		f.Reason = fmt.Sprintf("%d uncorrected and %d corrected errors since the driver was loaded", r.VolatileUncorrected, r.VolatileCorrected)
		if rise > p.WatchCorrectedPerHour {
			f.Action = checks.Watch
			f.Reason += fmt.Sprintf("; %d corrected in the last %s", rise, r.Over.Round(time.Second))
		} else if now.Saturated() {
			f.Action = checks.Watch
			f.Reason += "; the corrected counter is " + why
		}
		if r.Pending {
			f.Reason += "; ECC goes off with the next GPU reset"
		}
	}
	return f
}

// evidence is what was read. A location's counts are volatile corrected/uncorrected, aggregate corrected/uncorrected.
func evidence(r Reading) string {
	s := fmt.Sprintf("enabled=%t volatile_corrected=%d volatile_uncorrected=%d aggregate_corrected=%d aggregate_uncorrected=%d",
		r.Enabled, r.VolatileCorrected, r.VolatileUncorrected, r.AggregateCorrected, r.AggregateUncorrected)
	for _, l := range []struct {
		name string
		Location
	}{{"dram", r.DRAM}, {"sram", r.SRAM}} {
		if l.Have == checks.Read {
			s += fmt.Sprintf(" %s=%d/%d,%d/%d", l.name, l.VolatileCorrected, l.VolatileUncorrected, l.AggregateCorrected, l.AggregateUncorrected)
		} else if l.Have == checks.Unread {
			s += fmt.Sprintf(" %s=%s", l.name, l.Have)
		}
	}
	if r.HaveSRAM == checks.Read {
		s += fmt.Sprintf(" sram_threshold_exceeded=%t", r.SRAMThresholdExceeded)
	}
	return s
}
