package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-gpu/assay/agent/control"
	"github.com/assay-gpu/assay/agent/identity"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A load is many agents in this process. Towards the control plane each is a real one: the agent's own client, with an
// identity from a token, a connection, a stream, heartbeats and reports of its own. Behind that is no hardware.
type load struct {
	every   time.Duration // between an agent's reports
	failing float64       // share of reports that tell a soft fault

	beats, reports, failed, screens atomic.Int64 // made: heartbeats, reports, those with a fault, screens answered
	missed, ended, other            atomic.Int64 // heartbeats not delivered; streams that ended; whatever else a client logged as a warning
}

// loadAgent is one of them.
type loadAgent struct {
	load *load
	id   identity.Identity
	inv  checks.Inventory

	mu      sync.Mutex
	term    int64
	version uint64
	done    map[string]bool // effects taken up, by id
	serial  uint64          // of the certificate held
	queue   []checks.Report
	made    int
	ready   chan struct{}
	results chan wire.EffectResult
}

func newLoadAgent(l *load, id identity.Identity) *loadAgent {
	a := &loadAgent{load: l, id: id, done: map[string]bool{}, ready: make(chan struct{}, 1), results: make(chan wire.EffectResult, 64)}
	a.inv = checks.Inventory{Node: id.Node, BootID: "boot-of-" + id.Node, NodeSerial: "S-" + id.Node, Driver: "550.54.15"}
	for i := range 8 {
		a.inv.GPUs = append(a.inv.GPUs, checks.GPU{
			Node: id.Node, UUID: fmt.Sprintf("GPU-%s-%08d-0000-4000-8000-00000000000%d", id.Node, i, i), Index: i, PCI: fmt.Sprintf("0000:%02x:00.0", 0x1b+i*0x10),
			Name: "NVIDIA H100 80GB HBM3", Serial: fmt.Sprintf("16%s%d", id.Node, i),
		})
	}
	return a
}

// run connects and works until ctx ends. The first report is a prolog's that passes, which certifies an adopted node.
func (a *loadAgent) run(ctx context.Context) error {
	c, err := control.New(control.Config{URLs: a.id.URLs, TLS: a.id.TLS, Log: slog.New(&counting{a.load})})
	if err != nil {
		return err
	}
	a.put(a.report(checks.WhyProlog, checks.Quick))
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(ctx, a, a, a, nil) })
	wg.Go(func() { a.reporting(ctx) })
	wg.Wait()
	return nil
}

// reporting puts a report every so often, the first after a random part of the interval.
func (a *loadAgent) reporting(ctx context.Context) {
	wait := rand.N(a.load.every)
	for {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait = a.load.every
		r := a.report(checks.WhyBackground, checks.NoLevel)
		if rand.Float64() < a.load.failing {
			a.load.failed.Add(1)
			g := a.inv.GPUs[rand.N(8)]
			r.Verdict = checks.Fail
			r.Findings = []checks.Finding{{Check: "ecc", Subject: g.Subject(), Verdict: checks.Fail, Action: checks.Drain, Count: 1, At: r.At, BootID: r.BootID,
				Reason: "50000001 corrected memory errors since the last reset; at most 50000000"}}
		}
		a.load.reports.Add(1)
		a.put(r)
	}
}

func (a *loadAgent) report(why checks.Why, suite checks.Level) checks.Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made++
	return checks.Report{ID: fmt.Sprintf("r-%s-%d", a.id.Node, a.made), Node: a.id.Node, BootID: a.inv.BootID, At: time.Now(), Why: why, Suite: suite,
		Verdict: checks.Pass, Tested: catalog.Suite(checks.Quick), Inventory: a.inv}
}

func (a *loadAgent) put(r checks.Report) {
	a.mu.Lock()
	a.queue = append(a.queue, r)
	a.mu.Unlock()
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

// Ready, Peek and Done are control.Reports.
func (a *loadAgent) Ready() <-chan struct{} { return a.ready }

func (a *loadAgent) Peek() (checks.Report, uint64, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		return checks.Report{}, 0, false
	}
	return a.queue[0], 0, true
}

func (a *loadAgent) Done(uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = a.queue[1:]
}

// Fence, Desire, Heard, Heartbeat and HeartbeatEvery are control.Agent.
func (a *loadAgent) Fence(context.Context) (int64, uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.term, a.version, nil
}

// Desire takes up each new effect: a screen passes at once, anything else is done.
func (a *loadAgent) Desire(_ context.Context, d wire.Desired) error {
	a.mu.Lock()
	a.term, a.version, a.serial = d.Term, d.Version, 0
	if d.Certificate != nil {
		a.serial = d.Certificate.Serial
	}
	var fresh []wire.Effect
	for _, e := range d.Effects {
		if !a.done[e.ID] {
			a.done[e.ID] = true
			fresh = append(fresh, e)
		}
	}
	a.mu.Unlock()
	for _, e := range fresh {
		if e.Kind == lifecycle.EffectScreen {
			var level checks.Level
			if err := level.UnmarshalText([]byte(e.Args["level"])); err != nil {
				return err
			}
			r := a.report(checks.WhyScreen, level)
			r.ID, r.Screen = "s-"+e.ID, e.ID
			a.load.screens.Add(1)
			a.put(r)
		}
		a.results <- wire.EffectResult{ID: e.ID, Node: a.id.Node, BootID: a.inv.BootID, Outcome: "done"}
	}
	return nil
}

func (a *loadAgent) Heard() {}

func (a *loadAgent) Heartbeat(context.Context) (wire.Heartbeat, error) {
	a.load.beats.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	return wire.Heartbeat{Node: a.id.Node, BootID: a.inv.BootID, Driver: a.inv.Driver, CertSerial: a.serial, AgentVersion: "load", SnapshotAgeSec: 1}, nil
}

func (a *loadAgent) HeartbeatEvery() time.Duration { return 10 * time.Second }

// NextResult and ResultSent are control.Results.
func (a *loadAgent) NextResult(ctx context.Context) (wire.EffectResult, error) {
	select {
	case r := <-a.results:
		return r, nil
	case <-ctx.Done():
		return wire.EffectResult{}, context.Cause(ctx)
	}
}

func (a *loadAgent) ResultSent(string) {}

// counting counts what the agents' clients log, instead of writing two thousand logs.
type counting struct{ load *load }

func (c *counting) Enabled(context.Context, slog.Level) bool { return true }
func (c *counting) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *counting) WithGroup(string) slog.Handler            { return c }

func (c *counting) Handle(_ context.Context, r slog.Record) error {
	switch {
	case r.Message == "heartbeat not delivered":
		c.load.missed.Add(1)
	case r.Message == "stream to the control plane ended":
		c.load.ended.Add(1)
	case r.Level >= slog.LevelWarn:
		c.load.other.Add(1)
	}
	return nil
}

// enrolAll spends one token a node, some at a time, as assay-agent enroll does.
func enrolAll(ctx context.Context, dir string, tokens []wire.EnrolToken) ([]identity.Identity, error) {
	ids := make([]identity.Identity, len(tokens))
	errs := make([]error, len(tokens))
	var wg sync.WaitGroup
	next := make(chan int)
	for range 8 {
		wg.Go(func() {
			for i := range next {
				ids[i], errs[i] = identity.Enroll(ctx, filepath.Join(dir, tokens[i].Node), tokens[i].Token)
			}
		})
	}
	for i := range tokens {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}
