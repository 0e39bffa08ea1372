package pcie

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/policy"
)

// ID is the check's catalog id.
const ID = "pcie"

// Judge turns a reading into a finding. It does no I/O. None of its faults is hard: the link still works.
func Judge(gpu checks.GPU, r Reading, p policy.PCIe) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
	switch r.Have {
	case checks.NotSupported:
		f.Verdict, f.Reason = checks.NotApplicable, "this machine shows no PCIe link for the GPU"
		return f
	case checks.Read:
	default:
		f.Reason = "PCIe link not read"
		if r.Err != "" {
			f.Reason += ": " + r.Err
		}
		return f
	}
	f.Evidence = evidence(r)
	var faults, watch, unread []string
	fault := func(a checks.Action, format string, args ...any) {
		f.Action = max(f.Action, a)
		faults = append(faults, fmt.Sprintf(format, args...))
	}
	watched := func(format string, args ...any) { watch = append(watch, fmt.Sprintf(format, args...)) }

	lanes := want(r.Most.Width, r.Port.Width)
	if p.Width > 0 {
		lanes = p.Width
	}
	if r.Width < lanes {
		fault(checks.Drain, "runs at x%d, x%d expected", r.Width, lanes)
	}
	busy := p.BusyPercent
	if r.Busy == checks.Read && r.slow(Moment{r.Gen, r.Percent}, busy) {
		text := fmt.Sprintf("runs at Gen%d while busy, Gen%d expected", r.Gen, want(r.Most.Gen, r.Port.Gen))
		if r.Before != nil && r.slow(*r.Before, busy) {
			fault(checks.Drain, "%s", text)
		} else {
			watched("%s; a fault when the next reading shows it too", text)
		}
	}
	limit := Limit(p, r.Gen, r.Width)
	for _, c := range r.counters() {
		by, why := c.Rise()
		if rate := counter.Rate(by, r.Over, time.Minute); c.limited && rate > limit {
			fault(checks.Drain, "%.0f %s a minute, more than %.0f on %s", rate, c.what, limit, r.link())
		}
		switch {
		case c.Saturated():
			watched("%s: %s", c.what, why)
		case c.Have == checks.Unread:
			unread = append(unread, c.what)
		}
	}
	if r.Busy == checks.Unread {
		unread = append(unread, "load")
	}
	if r.HaveACS == checks.Unread && p.RequireACSOff {
		unread = append(unread, "ACS")
	}
	switch by, why := r.Fatal.Rise(); {
	case why == "" && by > 0:
		fault(checks.Drain, "%d fatal errors in %s", by, r.Over.Round(time.Second))
	case r.Fatal.Have == checks.Read && r.Fatal.Now > 0 && r.Fatal.Then == nil && !r.Fatal.Saturated():
		// One took the link down at some time of this boot, and it is up again. The next reading tells whether it goes on.
		watched("%d fatal errors since boot, when is not known", r.Fatal.Now)
	}
	if by, why := r.NonFatal.Rise(); why == "" && by > 0 {
		watched("%d uncorrectable non-fatal errors in %s", by, r.Over.Round(time.Second))
	}
	if r.HaveACS == checks.Read && len(r.ACS) > 0 {
		text := fmt.Sprintf("ACS redirects peer-to-peer traffic at %s", strings.Join(r.ACS, ", "))
		if p.RequireACSOff {
			fault(checks.FixConfig, "%s", text)
		} else {
			watched("%s", text)
		}
	}
	switch {
	case len(faults) > 0:
		f.Verdict, f.Reason = checks.Fail, strings.Join(faults, "; ")
	case lanes == 0:
		f.Reason = fmt.Sprintf("runs at x%d; how wide it should be is not known", r.Width)
	case len(unread) > 0:
		f.Reason = strings.Join(append([]string{strings.Join(unread, ", ") + " not read"}, watch...), "; ")
		if len(watch) > 0 {
			f.Action = checks.Watch
		}
	case len(watch) > 0:
		f.Verdict, f.Action, f.Reason = checks.Pass, checks.Watch, strings.Join(watch, "; ")
	default:
		f.Verdict, f.Reason = checks.Pass, r.link()
		if by, why := r.Replays.Rise(); why == "" {
			f.Reason += fmt.Sprintf(", %d replays in %s", by, r.Over.Round(time.Second))
		}
	}
	return f
}

// A named counter of a link; limited is one whose rate is judged.
type named struct {
	what string
	counter.Reading
	limited bool
}

func (r Reading) counters() [4]named {
	return [4]named{{"replays", r.Replays, true}, {"corrected errors", r.Correctable, true}, {"non-fatal errors", r.NonFatal, false}, {"fatal errors", r.Fatal, false}}
}

// link is how fast and how wide the link runs, as "Gen5 x16".
func (r Reading) link() string {
	if r.Gen == 0 {
		return fmt.Sprintf("x%d, at a speed that is not told", r.Width)
	}
	return fmt.Sprintf("Gen%d x%d", r.Gen, r.Width)
}

// Limit is how many replays, or corrected errors, a minute a link may have: its lanes times the policy's figure for its
// generation, rounded up.
func Limit(p policy.PCIe, gen, width int) float64 {
	per := p.RepeatsPerMinuteAndLane
	var rate float64
	switch gen {
	case 1:
		rate = per.Gen1
	case 2:
		rate = per.Gen2
	case 3:
		rate = per.Gen3
	case 4:
		rate = per.Gen4
	case 5:
		rate = per.Gen5
	default: // 6, or not known: the most that any allows
		rate = per.Gen6
	}
	if width < 1 {
		width = 16
	}
	return math.Ceil(rate * float64(width))
}

func evidence(r Reading) string {
	var b strings.Builder
	fmt.Fprintf(&b, "gen=%d width=%d max_gen=%d max_width=%d", r.Gen, r.Width, r.Most.Gen, r.Most.Width)
	if r.Port != (End{}) {
		fmt.Fprintf(&b, " port_gen=%d port_width=%d", r.Port.Gen, r.Port.Width)
	}
	if r.Busy == checks.Read {
		fmt.Fprintf(&b, " busy=%d%%", r.Percent)
	}
	fmt.Fprintf(&b, " over=%s", r.Over.Round(time.Second))
	for _, c := range []struct {
		what string
		counter.Reading
	}{{"replays", r.Replays}, {"correctable", r.Correctable}, {"nonfatal", r.NonFatal}, {"fatal", r.Fatal}} {
		if c.Have != checks.Read {
			continue
		}
		fmt.Fprintf(&b, " %s=%d", c.what, c.Now)
		if by, why := c.Rise(); why == "" {
			fmt.Fprintf(&b, "(+%d)", by)
		}
	}
	return b.String()
}
