package aer

import (
	"fmt"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// NotRecovered is what the kernel says when not all drivers below a port took part in handling its error. The GPU's driver
// never does (NVIDIA/open-gpu-kernel-modules 1229), so that it says nothing of how bad the error was: its severity does.
const NotRecovered = "the drivers below could not recover"

// Judge turns an error into a finding without time, node and boot id. gpu is the GPU on whose path it is, empty when that
// is not known or not one; count is how many such errors there were within the policy's window, this one included.
//
// A fatal error is a soft Fail: the link is down, and whether the GPU is lost the driver says itself. Others are no fault
// until there are too many of them.
func Judge(e Event, gpu string, count int, p policy.AER) checks.Finding {
	f := checks.Finding{Check: ID, Subject: checks.Subject{Kind: checks.KindNode, PCI: e.Device}, Evidence: e.Raw}
	where := " on " + e.Device
	if gpu != "" {
		f.Subject.Kind, f.Subject.PCI = checks.KindGPU, gpu
		if where = ""; board(e.Device) != gpu {
			where = fmt.Sprintf(" on %s above it", e.Device)
		}
	}
	what := e.Severity.String() + where
	if e.Kind == Unrecovered {
		what += ": " + NotRecovered
	}
	if e.Layer != "" {
		what += ", " + e.Layer
	}
	limit := -1
	switch e.Severity {
	case Fatal:
		f.Verdict, f.Action, f.Reason = checks.Fail, checks.Drain, what+": the link is down"
		return f
	case Corrected:
		limit = p.MaxCorrected
	case NonFatal:
		limit = p.MaxNonFatal
	}
	if limit >= 0 && count > limit {
		f.Verdict, f.Action = checks.Fail, checks.Drain
		f.Reason = fmt.Sprintf("%s: %d within %s, more than %d", what, count, p.Window, limit)
		return f
	}
	f.Verdict, f.Action, f.Reason = checks.NotApplicable, checks.Watch, what
	return f
}

// A Rate counts events within a sliding window. The zero value has seen none.
type Rate struct{ parts []part }

// A part is a 32nd of the window.
type part struct {
	from time.Time
	n    int
}

const parts = 32

// Add notes one event and returns how many there were within the policy's window before it, itself included. Events come in
// the order of their time; one that is earlier counts as of the latest.
func (r *Rate) Add(at time.Time, p policy.AER) int {
	window := p.Window
	if n := len(r.parts); n > 0 && policy.Duration(at.Sub(r.parts[n-1].from)) < window/parts {
		r.parts[n-1].n++
	} else {
		r.parts = append(r.parts, part{at, 1})
	}
	for len(r.parts) > 1 && policy.Duration(at.Sub(r.parts[0].from)) > window {
		r.parts = r.parts[1:]
	}
	total := 0
	for _, p := range r.parts {
		total += p.n
	}
	return total
}
