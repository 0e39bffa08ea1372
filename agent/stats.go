package agent

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/port"
	"github.com/assay-gpu/assay/checks/xid"
)

// HookBuckets are the upper bounds, in seconds, of the buckets that hook durations are counted in.
var HookBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 14, 20}

// A FindingKey names a kind of finding in Stats.
type FindingKey struct {
	Check   string
	Verdict checks.Verdict
	Action  checks.Action
}

// An XIDKey names an XID on a GPU in Stats. UUID is empty when the kernel log names a device that is not known.
type XIDKey struct {
	Code int
	UUID string
}

// A PortKey names a network port in Stats, by the check that judges it.
type PortKey struct{ Check, Port string }

// A HookKey names a hook's outcome in Stats.
type HookKey struct {
	Hook    Hook
	Outcome Outcome
}

// A Histogram counts hook durations; Counts is cumulative over HookBuckets.
type Histogram struct {
	Counts []uint64
	Count  uint64
	Sum    float64 // seconds
}

// Stats are the agent's numbers at one moment. Counters only rise within a run.
type Stats struct {
	Node, Version  string
	Findings       map[FindingKey]uint64
	XIDs           map[XIDKey]uint64
	UnknownXIDs    uint64
	KernelRecords  uint64
	KernelLost     uint64
	Hooks          map[HookKey]uint64
	HookDurations  map[Hook]Histogram
	Faults         []checks.Finding // of the last snapshot, on GPUs
	NodeFaults     []checks.Finding // of the last snapshot, on the node itself: its ports, file systems and the like
	Ports          map[PortKey]bool // of the last snapshot, those that are or should be up: whether they are
	Blocked        []checks.GPU
	Certificate    *time.Duration // left; nil without a certificate
	SnapshotAge    *time.Duration // nil before the first
	SnapshotsTaken uint64
}

// maxXIDKeys bounds the XID counters: the kernel log can name any number of codes and devices.
const maxXIDKeys = 1024

// A statsBook counts. Its methods may be called from any goroutine.
type statsBook struct {
	mu       sync.Mutex
	findings map[FindingKey]uint64
	xids     map[XIDKey]uint64
	unknown  uint64
	hooks    map[HookKey]uint64
	times    map[Hook]Histogram
}

func (b *statsBook) judged(fs []checks.Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.findings == nil {
		b.findings = map[FindingKey]uint64{}
	}
	for _, f := range fs {
		b.findings[FindingKey{f.Check, f.Verdict, f.Action}]++
	}
}

func (b *statsBook) sighted(f checks.Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.Check != xid.ID {
		return
	}
	if _, known := xid.Lookup(f.Code); !known {
		b.unknown++
	}
	if b.xids == nil {
		b.xids = map[XIDKey]uint64{}
	}
	k := XIDKey{f.Code, f.Subject.GPUUUID}
	if _, seen := b.xids[k]; seen || len(b.xids) < maxXIDKeys {
		b.xids[k]++
	}
}

func (b *statsBook) hooked(h Hook, o Outcome, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hooks == nil {
		b.hooks, b.times = map[HookKey]uint64{}, map[Hook]Histogram{}
	}
	b.hooks[HookKey{h, o}]++
	t := b.times[h]
	if t.Counts == nil {
		t.Counts = make([]uint64, len(HookBuckets))
	}
	for i, le := range HookBuckets {
		if d.Seconds() <= le {
			t.Counts[i]++
		}
	}
	t.Count++
	t.Sum += d.Seconds()
	b.times[h] = t
}

// Stats returns the agent's numbers.
func (a *Agent) Stats(ctx context.Context) (Stats, error) {
	st := Stats{Node: a.cfg.Node, Version: a.cfg.Version, KernelRecords: a.read.Load()}
	a.stats.mu.Lock()
	st.Findings, st.XIDs, st.UnknownXIDs = maps.Clone(a.stats.findings), maps.Clone(a.stats.xids), a.stats.unknown
	st.Hooks, st.HookDurations = maps.Clone(a.stats.hooks), maps.Clone(a.stats.times)
	for h, t := range st.HookDurations {
		t.Counts = slices.Clone(t.Counts)
		st.HookDurations[h] = t
	}
	a.stats.mu.Unlock()
	err := a.call(ctx, func() {
		now := a.cfg.Clock()
		st.KernelLost = a.lost
		for _, f := range a.lastFound {
			switch {
			case f.Verdict != checks.Fail:
			case f.Subject.GPUUUID != "":
				st.Faults = append(st.Faults, f)
			default:
				st.NodeFaults = append(st.NodeFaults, f)
			}
		}
		if a.last != nil {
			st.Ports = portsUp(a.last.Host)
			for _, g := range a.last.GPUs {
				if g.Call.Blocked {
					st.Blocked = append(st.Blocked, g.GPU)
				}
			}
		}
		if a.held != nil && a.held.BootID == a.bootID {
			st.Certificate = new(max(0, a.held.Expires-now))
		}
		if a.seen != nil {
			st.SnapshotAge = new(now - a.seen.At)
		}
	})
	return st, err
}

// portsUp says of each port that is up, or has been, whether it is.
func portsUp(h catalog.HostState) map[PortKey]bool {
	out := map[PortKey]bool{}
	for id, r := range map[string]port.Reading{port.Infiniband: h.Infiniband, port.Ethernet: h.Ethernet} {
		for _, p := range r.Ports {
			if p.Err == "" && (p.Up || p.Past.Learned != nil) {
				out[PortKey{id, p.Name}] = p.Up
			}
		}
	}
	return out
}
