package catalog

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/clocks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/pcie"
)

// The times between which counters are compared.
const (
	// window is the least time between two readings of which a rate is made: over less, one error looks like a storm. DCGM
	// takes the same for bit error rates.
	window = time.Minute
	// spacing is the least time between two readings that are kept.
	spacing = 10 * time.Second
	// hour is how far back corrected memory errors are compared, by readings this far apart.
	hour, hourSpacing = time.Hour, 5 * time.Minute
)

// A History is what one node's counters stood at before. Add puts the earlier values beside those of a new snapshot, so that
// the snapshot alone says what there is to judge. The zero History is empty.
type History struct {
	boot   string
	recent []moment          // oldest first; the first is the youngest that is a window old, or the first of all
	hourly []moment          // oldest first
	seen   map[string][]bool // by UUID: links that were active in this boot
}

type moment struct {
	at   time.Time
	gpus map[string]GPUState // by UUID
}

// Add compares s with what was read before in the same boot, fills in what it finds and remembers s.
func (h *History) Add(s *Snapshot) {
	if h.boot != s.BootID || len(h.recent) > 0 && s.At.Before(h.recent[len(h.recent)-1].at) {
		*h = History{boot: s.BootID}
	}
	if h.seen == nil {
		h.seen = map[string][]bool{}
	}
	now := moment{s.At, map[string]GPUState{}}
	for i := range s.GPUs {
		g := &s.GPUs[i]
		if g.UUID == "" {
			continue
		}
		now.gpus[g.UUID] = *g // as it was read, without what is filled in below
		h.see(g)
		if m, ok := latest(h.recent, s.At.Add(-window)); ok {
			if old, ok := m.gpus[g.UUID]; ok {
				g.compare(old, s.At.Sub(m.at))
			}
		}
		if m, ok := earliest(h.hourly, s.At.Add(-hour), s.At.Add(-window)); ok {
			if old, ok := m.gpus[g.UUID]; ok && old.ECC.Have == checks.Read && g.ECC.Have == checks.Read {
				then := old.ECC.VolatileCorrected
				g.ECC.CorrectedThen, g.ECC.Over = &then, s.At.Sub(m.at)
			}
		}
	}
	h.recent = remember(h.recent, now, spacing, s.At.Add(-window))
	h.hourly = remember(h.hourly, now, hourSpacing, s.At.Add(-hour))
}

// see notes which links are active, and tells the links that are not whether they were.
func (h *History) see(g *GPUState) {
	seen := h.seen[g.UUID]
	for len(seen) < len(g.NVLink.Links) {
		seen = append(seen, false)
	}
	for i := range g.NVLink.Links {
		l := &g.NVLink.Links[i]
		l.Seen = seen[i]
		if l.Have == checks.Read && l.State != 0 {
			seen[i] = true
		}
	}
	h.seen[g.UUID] = seen
}

// compare puts what old showed beside what g shows.
func (g *GPUState) compare(old GPUState, over time.Duration) {
	g.NVLink.Over, g.PCIe.Over, g.Clocks.Over, g.Fabric.Over = over, over, over, over
	for i := range min(len(g.NVLink.Links), len(old.NVLink.Links)) {
		l, was := &g.NVLink.Links[i], old.NVLink.Links[i]
		l.Replay, l.Recovery, l.CRC = l.Replay.After(was.Replay), l.Recovery.After(was.Recovery), l.CRC.After(was.CRC)
	}
	p, was := &g.PCIe, old.PCIe
	p.Replays, p.Correctable = p.Replays.After(was.Replays), p.Correctable.After(was.Correctable)
	p.NonFatal, p.Fatal = p.NonFatal.After(was.NonFatal), p.Fatal.After(was.Fatal)
	if was.Have == checks.Read && was.Busy == checks.Read {
		p.Before = &pcie.Moment{Gen: was.Gen, Percent: was.Percent}
	}
	if old.Clocks.Have == checks.Read {
		r := old.Clocks.Reasons
		g.Clocks.Before = &r
	}
	held := map[clocks.Name]counter.Reading{}
	for name, c := range g.Clocks.Held {
		held[name] = c.After(old.Clocks.Held[name])
	}
	if len(held) > 0 {
		g.Clocks.Held = held
	}
	if old.Fabric.Have == checks.Read {
		s := old.Fabric.State
		g.Fabric.Before = &s
	}
}

// latest is the youngest of ms that is not after t.
func latest(ms []moment, t time.Time) (moment, bool) {
	for i := len(ms) - 1; i >= 0; i-- {
		if !ms[i].at.After(t) {
			return ms[i], true
		}
	}
	return moment{}, false
}

// earliest is the oldest of ms that is neither before from nor after to.
func earliest(ms []moment, from, to time.Time) (moment, bool) {
	for _, m := range ms {
		if !m.at.Before(from) {
			return m, !m.at.After(to)
		}
	}
	return moment{}, false
}

// remember adds now to ms, unless the newest is closer than spacing, and drops what is older than the youngest that is not
// after from.
func remember(ms []moment, now moment, spacing time.Duration, from time.Time) []moment {
	if n := len(ms); n == 0 || now.at.Sub(ms[n-1].at) >= spacing {
		ms = append(ms, now)
	}
	for len(ms) > 1 && !ms[1].at.After(from) {
		ms = ms[1:]
	}
	return ms
}
