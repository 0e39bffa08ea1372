package rowremap

import (
	"fmt"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// ID is the check's catalog id.
const ID = "rowremap"

// Judge turns a reading into a finding. It does no I/O.
func Judge(gpu checks.GPU, r Reading, p policy.RowRemap) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
	switch r.Have {
	case checks.NotSupported:
		f.Verdict, f.Reason = checks.NotApplicable, "this GPU remaps no rows"
		return f
	case checks.Read:
	default:
		f.Reason = "row remapper not read"
		if r.Err != "" {
			f.Reason += ": " + r.Err
		}
		return f
	}
	f.Evidence = fmt.Sprintf("correctable=%d uncorrectable=%d pending=%t failed=%t", r.Correctable, r.Uncorrectable, r.Pending, r.Failed)
	exhausted := r.HaveBanks == checks.Read && r.Banks.None > 0
	if b := r.Banks; r.HaveBanks == checks.Read {
		f.Evidence += fmt.Sprintf(" banks=%d/%d/%d/%d/%d", b.Max, b.High, b.Partial, b.Low, b.None)
	}
	switch {
	case r.Failed:
		f.Verdict, f.Action, f.Hard = checks.Fail, checks.RMA, true
		f.Reason = fmt.Sprintf("row remap failed; %d uncorrectable rows remapped before", r.Uncorrectable)
	case r.Correctable > p.MaxCorrectable:
		f.Verdict, f.Action = checks.Fail, checks.Drain
		f.Reason = fmt.Sprintf("%d rows remapped after correctable errors, more than %d", r.Correctable, p.MaxCorrectable)
	case r.Pending:
		f.Verdict, f.Action = checks.Pass, checks.ResetGPU
		f.Reason = "row remap pending; reset the GPU when the node is next idle"
	case exhausted:
		f.Verdict, f.Action = checks.Pass, checks.Watch
		f.Reason = fmt.Sprintf("banks without a spare row: %d; the next remap there fails", r.Banks.None)
	case r.Uncorrectable >= p.WatchUncorrectable:
		f.Verdict, f.Action = checks.Pass, checks.Watch
		f.Reason = fmt.Sprintf("%d rows remapped after uncorrectable errors, %d or more", r.Uncorrectable, p.WatchUncorrectable)
	default:
		f.Verdict = checks.Pass
		f.Reason = fmt.Sprintf("%d rows remapped, none pending, none failed", r.Correctable+r.Uncorrectable)
		if r.HaveBanks == checks.Unread { // what would only be watched leaves no verdict open
			f.Reason += "; how many spare rows are left was not read"
		}
	}
	return f
}
