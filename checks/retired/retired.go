// Package retired judges the pages of memory that a GPU without a row remapper has taken out of use.
//
// Boards before A100 retire a page of 64 KiB after a double-bit error, or after two single-bit errors in it; the table
// holds 64 pages and never forgets. Source: NVIDIA, "Dynamic Page Retirement".
package retired

import (
	"fmt"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// ID is the check's catalog id.
const ID = "retired"

// A Reading is one GPU's retired pages. Source: nvmlDeviceGetFieldValues, NVML_FI_DEV_RETIRED_*.
type Reading struct {
	Have    checks.Availability `json:"have"`
	Err     string              `json:"err,omitempty"`
	Single  int                 `json:"single,omitempty"`  // pages retired after single-bit errors, over the GPU's life
	Double  int                 `json:"double,omitempty"`  // pages retired after double-bit errors, over the GPU's life
	Pending bool                `json:"pending,omitempty"` // pages wait for a reset to be retired
}

// Judge turns a reading into a finding. It does no I/O.
//
// A page that waits when the table is all but full does not fit: Azure's health checks replace a board with 62 pages and
// one pending.
func Judge(gpu checks.GPU, r Reading, p policy.RetiredPages) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
	switch r.Have {
	case checks.NotSupported:
		f.Verdict, f.Reason = checks.NotApplicable, "this GPU retires no pages"
		return f
	case checks.Read:
	default:
		f.Reason = "retired pages not read"
		if r.Err != "" {
			f.Reason += ": " + r.Err
		}
		return f
	}
	total := r.Single + r.Double
	f.Evidence = fmt.Sprintf("single=%d double=%d pending=%t", r.Single, r.Double, r.Pending)
	full := total
	if r.Pending {
		full++
	}
	switch {
	case full >= p.Full:
		f.Verdict, f.Action = checks.Fail, checks.RMA
		f.Reason = fmt.Sprintf("%d pages retired, pending %t: the table is full at %d", total, r.Pending, p.Full)
	case r.Pending:
		f.Verdict, f.Action = checks.Pass, checks.ResetGPU
		f.Reason = fmt.Sprintf("%d pages retired, more wait for a GPU reset", total)
	case total >= p.Watch:
		f.Verdict, f.Action = checks.Pass, checks.Watch
		f.Reason = fmt.Sprintf("%d pages retired, of %d", total, p.Full)
	default:
		f.Verdict, f.Reason = checks.Pass, fmt.Sprintf("%d pages retired", total)
	}
	return f
}
