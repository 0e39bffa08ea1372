package agent

import (
	"context"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/xid"
)

// A DriverEvent is an XID that the driver raised beside what it writes to the kernel log. It has no text.
type DriverEvent struct {
	PCI    string    `json:"pci"`           // as in an xid.Event
	MIG    string    `json:"mig,omitempty"` // likewise
	Code   int       `json:"code"`
	At     time.Time `json:"at"`               // when it arrived
	Logged bool      `json:"logged,omitempty"` // the kernel log told of it too
}

// event is the event as the judge of the kernel log takes it.
func (e DriverEvent) event() catalog.LogEvent {
	return catalog.LogEvent{Event: xid.Event{Code: e.Code, PCI: e.PCI, MIG: e.MIG, Link: -1, NVML: true}, At: e.At}
}

// eventGrace is how long an event waits for the kernel log's line, which says more. The driver writes the line first, so
// that only a log that cannot be read, or is behind, makes it wait in vain.
const eventGrace = 2 * time.Second

// readEvents takes in the driver's events until ctx ends, each once its grace is over.
func (a *Agent) readEvents(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case ev := <-a.cfg.Events:
			if !sleep(ctx, eventGrace-time.Since(ev.At)) {
				return
			}
			if a.call(ctx, func() { a.takeEvent(ev) }) != nil {
				return
			}
		}
	}
}

// takeEvent judges an event that the kernel log has not told of. It runs in the loop.
func (a *Agent) takeEvent(ev DriverEvent) {
	p, now := *a.policy.Load(), a.cfg.Clock()
	if !p.XID.NVMLEvents {
		return
	}
	ev.Logged = !a.sources.event(xidOn{ev.PCI, ev.Code}, now-time.Since(ev.At), p.Agent.IncidentGap.D())
	a.kernel.Events, a.kernelNew = keepEvent(a.kernel.Events, ev), true
	if !ev.Logged {
		a.tellEvents(a.kernelLog.Judge([]catalog.LogEvent{ev.event()}, a.knownHardware(), p), newID(), now, false)
	}
}

// counted reports whether a finding of the kernel log says once more, in more words, what an event told of before it.
func (a *Agent) counted(f checks.Finding, now time.Duration) bool {
	if f.Check != xid.ID || f.Subject.PCI == "" {
		return false
	}
	k := xidOn{f.Subject.PCI, f.Code}
	told := a.sources.line(k, now, a.policy.Load().Agent.IncidentGap.D())
	if told && logged(a.kernel.Events, k) {
		a.kernelNew = true
	}
	return told
}

// An xidOn is one code on one GPU, by its address.
type xidOn struct {
	pci  string
	code int
}

// maxXIDSources bounds how many codes and GPUs are remembered: the kernel log can name any number.
const maxXIDSources = 1024

// xidSources tells which lines and events are of the same XIDs. Times are those of arrival, by the boot clock: the kernel's
// own clock, which lines carry, runs apart from it with the weeks. The zero value is ready.
type xidSources map[xidOn]*xidSource

type xidSource struct {
	line, event time.Duration // when the last arrived
	lined       bool
	alone       int // events told since the last line
}

// line notes a line and reports whether it is of an event that has been told within gap.
func (s *xidSources) line(k xidOn, now, gap time.Duration) (told bool) {
	x := s.of(k)
	x.lined, x.line = true, now
	if now-x.event > gap {
		x.alone = 0
	}
	if x.alone == 0 {
		return false
	}
	x.alone--
	return true
}

// event notes an event that arrived at a time and reports whether it is to be told: no line of the same came within gap.
func (s *xidSources) event(k xidOn, at, gap time.Duration) bool {
	x := s.of(k)
	if x.lined && (at-x.line).Abs() <= gap {
		return false
	}
	if at-x.event > gap {
		x.alone = 0
	}
	x.event = at
	x.alone++
	return true
}

func (s *xidSources) of(k xidOn) *xidSource {
	x := (*s)[k]
	if x == nil {
		if *s == nil || len(*s) >= maxXIDSources {
			*s = xidSources{}
		}
		x = &xidSource{}
		(*s)[k] = x
	}
	return x
}
