package coordinator

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/assay-gpu/assay/coordinator/killpoint"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/slurm"
)

// Slurm is what the coordinator asks of Slurm; package slurm's Client has it. An error is a *slurm.ChangedError when what
// was expected no longer holds (nothing was done), a *slurm.RefusedError when it will not be done, or else unclear.
type Slurm interface {
	Reader
	Drain(ctx context.Context, orders []slurm.DrainOrder) []slurm.Result
	SetReason(ctx context.Context, node, reason string, expect *slurm.Expect) error
	Resume(ctx context.Context, node string, expect slurm.Expect) error
	Reboot(ctx context.Context, node string, since time.Time, expect slurm.Expect) error
	Requeue(ctx context.Context, job string, restarts int) error
	Cancel(ctx context.Context, job string, restarts int) error
	Release(ctx context.Context, job string, restarts int) error
}

// Pauses between two tries of an effect that Slurm did not answer or does not take yet.
const (
	retryFirst = 200 * time.Millisecond
	retryMost  = 15 * time.Second
	resumeFor  = 10 * time.Minute // how long a resume waits for slurmd to answer after a boot
)

// A try is when an effect is next due, and how long the pause after that.
type try struct {
	next  time.Time
	pause time.Duration
}

// carrySlurm carries out the effects on Slurm, for each node in their order, and ticks them off.
func (l *lead) carrySlurm(ctx context.Context) error {
	if l.sl == nil {
		<-ctx.Done() // no node is ever drained but by its state, and the agents reboot
		return context.Cause(ctx)
	}
	l.settle(ctx)
	select {
	case <-l.slurm.first: // what Slurm says comes before what we do
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	tries := map[string]try{}
	for {
		now := time.Now()
		next := now.Add(time.Second)
		var drains, others []pending
		for _, e := range l.slurmDue() {
			if t, ok := tries[e.ID]; ok && now.Before(t.next) {
				next = earlier(next, t.next)
				continue
			}
			if e.Kind == lifecycle.EffectDrain {
				drains = append(drains, e)
			} else {
				others = append(others, e)
			}
		}
		did := len(drains) + min(len(others), 1)
		errs := l.carryDrains(ctx, drains)
		l.lookAgain(ctx, drains, errs)
		for i, e := range drains {
			l.settled(ctx, e, errs[i], tries)
		}
		if len(others) > 0 { // one at a time: a drain that has come meanwhile goes before the next
			l.settled(ctx, others[0], l.carryOne(ctx, others[0]), tries)
		}
		if did > 0 {
			l.slurm.readSoon()
			if ctx.Err() == nil && l.term.Valid() {
				continue
			}
		}
		t := time.NewTimer(time.Until(next))
		select {
		case <-l.kick:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
		t.Stop()
	}
}

// slurmDue lists, for each node, the first effect that Slurm is to carry out.
func (l *lead) slurmDue() []pending {
	l.mu.RLock()
	defer l.mu.RUnlock()
	first := map[string]pending{}
	for _, e := range l.st.effects {
		if !slurmCarries(e.Kind) {
			continue
		}
		if f, ok := first[e.Node]; !ok || e.Seq < f.Seq {
			first[e.Node] = e
		}
	}
	var out []pending
	for _, e := range first {
		out = append(out, e)
	}
	sortPending(out)
	return out
}

// slurmCarries reports whether an effect is for Slurm, where there is one.
func slurmCarries(kind string) bool {
	switch kind {
	case lifecycle.EffectDrain, lifecycle.EffectResume, lifecycle.EffectReason, lifecycle.EffectReboot, lifecycle.EffectRequeueJob,
		lifecycle.EffectKillJob, lifecycle.EffectReleaseJob:
		return true
	}
	return false
}

// unwantedError says that an effect's precondition no longer holds by our own record.
type unwantedError struct{ why string }

func (e *unwantedError) Error() string { return "no longer wanted: " + e.why }

// stands reports whether the effect's precondition still holds by our own record; Slurm's part is looked at right before
// the change.
func stands(n lifecycle.Node, e pending) (bool, string) {
	return lifecycle.Stands(n, lifecycle.Effect{Kind: e.Kind, Node: e.Node, Args: e.Args, BootID: e.BootID}, e.ID)
}

// wanted returns an error when the effect no longer stands.
func (l *lead) wanted(e pending) error {
	if ok, why := stands(l.node(e.Node), e); !ok {
		return &unwantedError{why}
	}
	return nil
}

// carryDrains drains many nodes in as few calls as their reasons allow. The answer has one error, or nil, for each effect.
func (l *lead) carryDrains(ctx context.Context, es []pending) []error {
	errs := make([]error, len(es))
	var orders []slurm.DrainOrder
	var at []int
	for i, e := range es {
		if errs[i] = l.wanted(e); errs[i] != nil {
			continue
		}
		orders = append(orders, slurm.DrainOrder{Node: e.Node, Reason: e.Args["reason"]})
		at = append(at, i)
	}
	if len(orders) == 0 {
		return errs
	}
	killpoint.Here("drain/before")
	for i, r := range l.sl.Drain(ctx, orders) {
		errs[at[i]] = r.Err
	}
	killpoint.Here("drain/done")
	return errs
}

// lookAgain reads Slurm once more before drains are ticked off: which jobs are on a node counts only as of a moment when no
// new one could start there. A drain that cannot be looked at is tried again, which changes nothing in Slurm.
func (l *lead) lookAgain(ctx context.Context, es []pending, errs []error) {
	only := map[string]bool{}
	for i, e := range es {
		if errs[i] == nil {
			l.slurm.touched(e.Node, time.Now())
			only[e.Node] = true
		}
	}
	if len(only) == 0 {
		return
	}
	if err := l.readSlurm(ctx, time.Now(), only); err != nil {
		for i := range errs {
			if errs[i] == nil {
				errs[i] = err
			}
		}
	}
}

// carryOne carries out one effect that is not a drain.
func (l *lead) carryOne(ctx context.Context, e pending) error {
	if err := l.wanted(e); err != nil {
		return err
	}
	restarts := slurm.AnyRestarts
	if r, err := strconv.Atoi(e.Args["restarts"]); err == nil {
		restarts = r
	}
	killpoint.Here(e.Kind + "/before")
	defer killpoint.Here(e.Kind + "/done")
	switch e.Kind {
	case lifecycle.EffectResume:
		return l.sl.Resume(ctx, e.Node, l.slurm.expect(e.Node, e.Args["reason"]))
	case lifecycle.EffectReason:
		return l.sl.SetReason(ctx, e.Node, e.Args["reason"], l.slurm.earlier(e.Node, e.Args["case"]))
	case lifecycle.EffectReboot:
		return l.sl.Reboot(ctx, e.Node, e.Created, slurm.Expect{Reason: l.node(e.Node).DrainReason})
	case lifecycle.EffectRequeueJob:
		return l.sl.Requeue(ctx, e.Args["job"], restarts)
	case lifecycle.EffectKillJob:
		return l.sl.Cancel(ctx, e.Args["job"], restarts)
	case lifecycle.EffectReleaseJob:
		return l.sl.Release(ctx, e.Args["job"], restarts)
	}
	return &unwantedError{"nobody here carries out " + e.Kind}
}

// settled ticks an effect off, or plans its next try.
func (l *lead) settled(ctx context.Context, e pending, err error, tries map[string]try) {
	if e.Kind != lifecycle.EffectDrain {
		l.slurm.touched(e.Node, time.Now())
	}
	outcome, detail, again := ending(e, err, time.Now())
	if again {
		t := tries[e.ID]
		t.pause = min(max(2*t.pause, retryFirst), retryMost)
		t.next = time.Now().Add(t.pause)
		tries[e.ID] = t
		l.log.Warn("effect not carried out yet", "node", e.Node, "effect", e.ID, "kind", e.Kind, "duration_seconds", t.pause.Seconds(), "err", err)
		return
	}
	delete(tries, e.ID)
	l.log.Info("effect", "node", e.Node, "effect", e.ID, "kind", e.Kind, "outcome", outcome, "detail", detail)
	l.ended(ctx, e, outcome, detail)
}

// ending decides what an effect's error means: done, skipped because its precondition no longer held, failed for good, or
// to be tried again because Slurm did not answer or cannot take it yet. It is pure.
func ending(e pending, err error, now time.Time) (outcome, detail string, again bool) {
	var changed *slurm.ChangedError
	var refused *slurm.RefusedError
	var unwanted *unwantedError
	switch {
	case err == nil:
		return "done", "", false
	case errors.As(err, &unwanted):
		return "skipped", err.Error(), false
	case errors.As(err, &changed) && changed.Done:
		return "done", err.Error(), false // our own earlier try, whose answer was lost
	case errors.As(err, &changed):
		return "skipped", err.Error(), false
	case errors.As(err, &refused):
		if e.Kind == lifecycle.EffectResume && now.Sub(e.Created) < resumeFor {
			return "", "", true
		}
		return "failed", err.Error(), false
	}
	return "", "", true
}

func (l *lead) node(name string) lifecycle.Node {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.st.nodes[name]
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
