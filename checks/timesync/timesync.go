// Package timesync judges whether the node's wall clock follows anything.
//
// assay itself measures on the boot clock and needs no wall clock; logs, Kerberos, certificates and job accounting do. The
// kernel is asked, not the daemon that disciplines it. A clock that is steered from outside the kernel (phc2sys) may look
// unsynchronised though it is not, so that a fault is made of it only where policy requires it.
// Source: adjtimex(2): STA_UNSYNC, maxerror.
package timesync

import (
	"fmt"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/strike"
	"github.com/assay-gpu/assay/checks/tally"
)

// ID is the check's catalog id.
const ID = "timesync"

// A Reading is the kernel's opinion of its wall clock.
type Reading struct {
	Have        checks.Availability `json:"have"`
	Err         string              `json:"err,omitempty"`
	Synced      bool                `json:"synced"`
	MaxError    time.Duration       `json:"max_error"`              // the kernel's bound on how far it is off
	UnsyncedFor time.Duration       `json:"unsynced_for,omitempty"` // as long as every look has found it so; Track fills it
}

// Track fills in for how long the clock has followed nothing. at is on the boot clock.
func Track(book *strike.Book, at time.Duration, r Reading) Reading {
	if r.Have == checks.Read {
		r.UnsyncedFor = book.Last(ID, "unsynced", at, !r.Synced, 0)
	}
	return r
}

// Judge does no I/O.
func Judge(r Reading, p policy.TimeSync) checks.Finding {
	if r.Have == checks.NotSupported {
		f := tally.Unread(ID, "wall clock", "")
		f.Verdict, f.Reason = checks.NotApplicable, "the kernel may not be asked from here"
		return f
	}
	if r.Have != checks.Read {
		return tally.Unread(ID, "wall clock", r.Err)
	}
	t := tally.New(ID)
	wrong := func(format string, args ...any) {
		if p.Require {
			t.Fault(checks.FixConfig, format, args...)
		} else {
			t.Watch(format, args...)
		}
	}
	switch {
	case !r.Synced && r.UnsyncedFor >= p.After.D():
		wrong("the clock has followed nothing for %s", r.UnsyncedFor.Round(time.Second))
	case !r.Synced:
	case r.MaxError > p.MaxError.D():
		wrong("the clock may be off by %s, more than %s", r.MaxError, p.MaxError)
	}
	well := fmt.Sprintf("the clock is within %s", r.MaxError)
	if !r.Synced {
		well = fmt.Sprintf("the clock has followed nothing for %s; of concern after %s", r.UnsyncedFor.Round(time.Second), p.After)
	}
	return t.Finding(fmt.Sprintf("synced=%t max_error=%s", r.Synced, r.MaxError), well)
}
