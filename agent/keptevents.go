package agent

import (
	"log/slog"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/xid"
)

// The driver's events are told once and cannot be read again, as the kernel log can: an agent keeps those of the boot, in
// kernel.json, for captures.

// maxKeptEvents bounds them.
const maxKeptEvents = 128

// keepEvent adds an event. When there are too many, the oldest goes of which there are others alike: what came once stays.
func keepEvent(kept []DriverEvent, ev DriverEvent) []DriverEvent {
	kept = append(slices.Clone(kept), ev)
	if len(kept) <= maxKeptEvents {
		return kept
	}
	count := map[xidOn]int{}
	for _, e := range kept {
		count[e.on()]++
	}
	i := max(0, slices.IndexFunc(kept, func(e DriverEvent) bool { return count[e.on()] > 1 }))
	return slices.Delete(kept, i, i+1)
}

// logged marks the newest event of a code on a GPU as one that the kernel log has told of after it, and reports whether there
// was one.
func logged(kept []DriverEvent, k xidOn) bool {
	for i := len(kept) - 1; i >= 0; i-- {
		if e := &kept[i]; e.on() == k && !e.Logged {
			e.Logged = true
			return true
		}
	}
	return false
}

func (e DriverEvent) on() xidOn { return xidOn{e.PCI, e.Code} }

// DriverEvents are the events of the boot that an agent kept in stateDir, oldest first.
func DriverEvents(stateDir, bootID string) []DriverEvent {
	var k keptKernel
	if s := (store{stateDir, slog.New(slog.DiscardHandler)}); !s.load("kernel.json", &k) || k.BootID != bootID {
		return nil
	}
	return k.Events
}

// withEvents adds to what a kernel log says those events that it does not tell of, each at its time. An event that the log told
// of when it came may be alone now: the log forgets its oldest lines.
func withEvents(log []catalog.LogEvent, events []DriverEvent, gap time.Duration) []catalog.LogEvent {
	lines := map[xidOn][]time.Time{}
	for _, l := range log {
		if x, ok := l.Event.(xid.Event); ok && !x.Switch {
			k := xidOn{x.PCI, x.Code}
			lines[k] = append(lines[k], l.At)
		}
	}
	for _, e := range events {
		told := lines[e.on()]
		if e.Logged && len(told) > 0 || slices.ContainsFunc(told, func(at time.Time) bool { return e.At.Sub(at).Abs() <= gap }) {
			continue
		}
		at := slices.IndexFunc(log, func(l catalog.LogEvent) bool { return l.At.After(e.At) })
		if at < 0 {
			at = len(log)
		}
		log = slices.Insert(log, at, e.event())
	}
	return log
}
