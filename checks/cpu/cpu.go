// Package cpu judges a node's processors: as many as policy says, or as this node has shown, and a clock that is good enough.
//
// A processor that firmware or the kernel has switched off slows every rank that shares the node. A kernel that has
// found its time-stamp counters to differ falls back to a clock that costs each look at the time about a microsecond and
// makes collectives crawl. Sources: /sys/devices/system/cpu/online, clocksource0/current_clocksource;
// facebookresearch/gcm (clocksource), Azure/azurehpc-health-checks (count).
package cpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/tally"
)

// ID is the check's catalog id.
const ID = "cpu"

// A Reading is the node's processors and the kernel's clock.
type Reading struct {
	Have     checks.Availability `json:"have"`
	Err      string              `json:"err,omitempty"`
	Online   int                 `json:"online"`            // logical processors at work
	Learned  int                 `json:"learned,omitempty"` // the most this node has shown; Track fills it
	Clock    string              `json:"clock,omitempty"`   // the clock source in use; empty when unread
	ClockErr string              `json:"clock_err,omitempty"`
}

// Track fills in what was learned, and learns.
func Track(learned *int, r Reading) Reading {
	if r.Have == checks.Read {
		*learned = max(*learned, r.Online)
	}
	r.Learned = *learned
	return r
}

// Judge does no I/O.
func Judge(r Reading, p policy.CPU) checks.Finding {
	if r.Have != checks.Read {
		return tally.Unread(ID, "processors", r.Err)
	}
	t := tally.New(ID)
	want, why := p.Count, "policy wants"
	if want == 0 {
		want, why = r.Learned, "this node has shown"
	}
	if r.Online < want {
		t.Fault(checks.Drain, "%d processors at work, %s %d", r.Online, why, want)
	}
	if good := strings.Fields(p.Clocks); len(good) > 0 {
		switch {
		case r.Clock == "":
			t.Doubt("clock source not read: %s", r.ClockErr)
		case !slices.Contains(good, r.Clock):
			t.Fault(checks.FixConfig, "the kernel takes its time from %s, policy wants %s", r.Clock, strings.Join(good, " or "))
		}
	}
	return t.Finding(fmt.Sprintf("online=%d learned=%d clock=%s", r.Online, r.Learned, r.Clock), fmt.Sprintf("%d processors, time from %s", r.Online, r.Clock))
}
