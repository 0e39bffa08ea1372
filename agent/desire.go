package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// hold puts a certificate on the boot clock.
func (a *Agent) hold(g *wire.GrantedCertificate, received time.Duration, before *Held) *Held {
	return Hold(g, received, func(c wire.GrantedCertificate) error { return a.cfg.Verify(c, a.desired.Keys) }, before)
}

// Desire takes in a desired state that the control client has admitted: newer than the last, of no lower term. When it
// returns nil the state is on disk. A policy that makes no sense is left aside, and the one in force stays.
func (a *Agent) Desire(ctx context.Context, d wire.Desired) error {
	if d.Node != a.cfg.Node {
		return fmt.Errorf("desired state %d is for node %q", d.Version, d.Node)
	}
	faults := policy.Validate(d.Policy)
	if len(faults) > 0 {
		a.log.Error("policy not taken", "revision", d.Policy.Version, "path", faults[0].Path, "err", faults[0].Message, "count", len(faults))
	}
	var saveErr error
	err := a.call(ctx, func() {
		if len(faults) > 0 {
			d.Policy = a.fleet
		}
		saveErr = a.desire(d)
	})
	if err == nil {
		err = saveErr
	}
	return err
}

func (a *Agent) desire(d wire.Desired) error {
	now := a.cfg.Clock()
	before := a.desired
	a.desired, a.known = d, true
	a.nameTombstoneBy(d)
	a.contact = &now
	a.held = a.hold(d.Certificate, now, a.held)
	if serial := serialOf(d.Certificate); serial > serialOf(before.Certificate) && !a.tombstone.Covers(serial) {
		a.answered()
	}
	if d.Policy.Version != before.Policy.Version || d.Policy.Mode != before.Policy.Mode {
		a.setPolicy(d.Policy)
		a.ledger.Renew()
		a.tellOpen()
		if i := a.interval(); a.cycleDue-now > i {
			a.cycleIn(i) // a shorter interval counts from now, not from the end of a longer one
		}
	} else if h := a.hardware(); h != a.resolvedFor || d.Learned != before.Learned {
		a.resolve(h)
	}
	if before.State != d.State {
		a.log.Info("state changed", "from", before.State, "to", d.State, "cert", serialOf(d.Certificate))
	}
	kept := keptDesired{BootID: a.bootID, Received: now, Desired: d}
	kept.Desired.Gangs = nil // what runs is known to the process that runs it, and to no later one
	if a.held != nil {
		kept.Expires, kept.GraceUntil = a.held.Expires, a.held.GraceUntil
	}
	err := a.store.save("desired.json", kept)
	a.effects.want(d.Effects)
	if a.cfg.OnGangs != nil {
		a.cfg.OnGangs(d.Gangs)
	}
	return err
}

// answered clears the tombstone and the open faults: a later certificate has been earned since.
func (a *Agent) answered() {
	if a.tombstone != nil {
		// One that cannot be removed may come back after a restart; it covers no later serial, so it does no harm.
		if err := a.store.clearTombstone(); err != nil {
			a.log.Error("tombstone not removed", "err", err)
		}
		a.log.Info("tombstone cleared", "cert", a.held.Serial)
		a.tombstone = nil
	}
	// A fault seen from now on is news, and no consequence of one that has been answered.
	a.ledger.Renew()
	a.resolve(a.hardware())
	if len(a.kernel.Open) > 0 {
		a.kernel.Open, a.kernelNew = nil, true
		a.saveKernel()
	}
}

// tellOpen tells the kernel log's unanswered faults again, as when a new policy may act on what was only observed.
func (a *Agent) tellOpen() {
	if len(a.kernel.Open) == 0 {
		return
	}
	fs := slices.Clone(a.kernel.Open)
	a.burySafely(fs)
	a.put(a.report(checks.WhyBackground, SuiteResult{Verdict: checks.FoldFindings(fs)}, fs))
}

func serialOf(g *wire.GrantedCertificate) uint64 {
	if g == nil {
		return 0
	}
	return g.Serial
}

// Heard notes that the control plane answered.
func (a *Agent) Heard() {
	select {
	case a.mail <- func() { now := a.cfg.Clock(); a.contact = &now }:
	case <-a.done:
	default: // the loop is busy; the next answer will do
	}
}

// Fence returns the term and version of the desired state at hand.
func (a *Agent) Fence(ctx context.Context) (term int64, version uint64, err error) {
	err = a.call(ctx, func() { term, version = a.desired.Term, a.desired.Version })
	return term, version, err
}

// Heartbeat says what the control plane should know of the agent now.
func (a *Agent) Heartbeat(ctx context.Context) (wire.Heartbeat, error) {
	var h wire.Heartbeat
	err := a.call(ctx, func() {
		h = wire.Heartbeat{
			Node: a.cfg.Node, BootID: a.bootID, Driver: a.inventory.Driver, PolicyVersion: a.policy.Load().Version,
			Unsent: a.cfg.Outbox.Waiting(), AgentVersion: a.cfg.Version,
		}
		if a.held != nil {
			h.CertSerial = a.held.Serial
		}
		for _, j := range a.jobs {
			if !j.Refused {
				h.JobsOnNode = append(h.JobsOnNode, j.Job.ID)
			}
		}
		if a.seen != nil {
			h.SnapshotAgeSec = (a.cfg.Clock() - a.seen.At).Seconds()
		}
	})
	return h, err
}

// HeartbeatEvery is the policy's time between heartbeats.
func (a *Agent) HeartbeatEvery() time.Duration { return a.policy.Load().Agent.Heartbeat.D() }

// SpoolBytes is the policy's bound on what unsent reports may take on disk.
func (a *Agent) SpoolBytes() int64 { return a.policy.Load().Agent.SpoolBytes }
