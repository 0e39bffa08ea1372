package main

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-gpu/assay/agent/history"
	"github.com/assay-gpu/assay/agent/probe/host"
	"github.com/assay-gpu/assay/agent/probe/nvml"
	"github.com/assay-gpu/assay/agent/probe/pci"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
)

// A nodeProber reads the whole node: its GPUs through the driver's child and, for their links, sysfs; itself through sysfs
// and procfs; and adds what is remembered of both.
type nodeProber struct {
	gpus    *nvml.Supervisor
	links   *pci.Reader
	host    *host.Probe
	history *history.Keeper
	policy  atomic.Pointer[policy.Policy]

	mu       sync.Mutex // Snapshot may be called by several at once
	counters catalog.History
}

func newNodeProber(cfg config, gpus *nvml.Supervisor, remember bool, log *slog.Logger) *nodeProber {
	p := &nodeProber{
		gpus: gpus, links: pci.New(cfg.Sysfs), host: host.New(host.System{Sysfs: cfg.Sysfs, Proc: cfg.Proc, Calls: cfg.calls}), history: history.Open(cfg.StateDir, !remember, log),
	}
	def := policy.Default()
	p.policy.Store(&def)
	return p
}

func (p *nodeProber) setPolicy(pol policy.Policy) {
	p.policy.Store(&pol)
	p.gpus.SetPolicy(pol.Agent)
	p.gpus.SetEvents(pol.XID.NVMLEvents)
}

// Snapshot reads both at once. What of the node does not answer within the time of one GPU's calls is unread in it.
func (p *nodeProber) Snapshot(ctx context.Context) (catalog.Snapshot, error) {
	pol := *p.policy.Load()
	type reading struct {
		state catalog.HostState
		texts host.Texts
		at    time.Duration
	}
	got := make(chan reading, 1)
	go func() {
		state, texts := p.host.Read(ctx, pol.Agent.CallDeadline.D(), pol)
		got <- reading{state, texts, bootClock()}
	}()
	s, err := p.gpus.Snapshot(ctx)
	r := <-got
	s.Host, s.Texts = r.state, r.texts
	if err != nil {
		return s, err
	}
	p.compare(&s)
	return p.history.Track(s, r.at, pol), nil
}

// compare reads the GPUs' links and puts what their counters stood at before beside what they stand at. A GPU that the driver
// lost is not looked for on the bus: it is lost, however its link looks.
func (p *nodeProber) compare(s *catalog.Snapshot) {
	for i := range s.GPUs {
		if g := &s.GPUs[i]; !g.Call.Lost {
			p.links.Read(g.PCI, &g.PCIe)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counters.Add(s)
}

// Renew has the next Snapshot ask the disks for their health logs.
func (p *nodeProber) Renew() { p.host.Renew() }

// Quiesce ends the driver's child. Nothing of the host holds a device open.
func (p *nodeProber) Quiesce(ctx context.Context) error { return p.gpus.Quiesce(ctx) }
