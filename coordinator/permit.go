package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// permitWait is how long a permit waits for our drain to stand in Slurm. The hook gives up after policy.Hooks.PermitWait.
const permitWait = 3500 * time.Millisecond

// Permit implements api.Agents. The report goes through the state machine like any other; the permit is granted when
// that took the node, and our reason stands in Slurm before the hook's exit 1 gets there.
func (c *Coordinator) Permit(ctx context.Context, ask wire.PermitAsk) (wire.PermitAnswer, error) {
	l, err := c.leading()
	if err != nil {
		return wire.PermitAnswer{}, err
	}
	if _, err := l.report(ctx, ask.Report, ask.OwnGPU); err != nil {
		return wire.PermitAnswer{}, err
	}
	answer, err := l.permit(ctx, ask)
	if err == nil {
		l.metrics.Permit(answer.Granted)
	}
	return answer, err
}

func (l *lead) permit(ctx context.Context, ask wire.PermitAsk) (wire.PermitAnswer, error) {
	l.mu.RLock()
	n, now := l.st.nodes[ask.Node], leaderNow(l.st)
	p := l.st.policyOf(n)
	l.mu.RUnlock()
	granted, why := permits(n, now, l.cfg.Slurm != nil)
	if !granted {
		if n.Marked(lifecycle.MarkHeldBack, now) {
			l.metrics.GuardRefused("refuse")
		}
		return wire.PermitAnswer{Reason: why}, nil
	}
	wait, cancel := context.WithTimeoutCause(ctx, min(permitWait, p.Hooks.PermitWait.D()),
		fmt.Errorf("our drain of %s did not stand in Slurm in time", ask.Node))
	defer cancel()
	if err := l.drained(wait, ask.Node); err != nil {
		return wire.PermitAnswer{}, &refusedError{why: err.Error(), hint: "is slurmctld up? `assay node explain " + ask.Node + "`"}
	}
	// How the drain ended is in the node: one that Slurm refused stands nowhere.
	n = l.node(ask.Node)
	if granted, why := permits(n, now, l.cfg.Slurm != nil); !granted || n.DrainPending {
		return wire.PermitAnswer{Reason: cmp.Or(why, "our drain does not stand in Slurm")}, nil
	}
	answer := wire.PermitAnswer{Granted: true, Reason: lifecycle.Reason(n)}
	if n.Case != nil {
		answer.Case = n.Case.ID
	}
	if ask.Job.ID == "" {
		return answer, nil
	}
	return answer, l.do(ctx, func(t *tx) error {
		t.refuse(ask.Node, ask.Job)
		return nil
	})
}

// permits decides from the node's state after its report: a node that we have taken, or are taking, may turn the job away.
func permits(n lifecycle.Node, at time.Time, slurm bool) (granted bool, why string) {
	switch {
	case n.Name == "":
		return false, "not enrolled"
	case n.Marked(lifecycle.MarkOverridden, at):
		return false, "overridden: a person resumed this node; its hook passes and counts"
	case n.DrainedByUs, !slurm && n.Case != nil && n.Case.Out:
		return true, "" // without Slurm a node that is out for a case is drained nowhere else
	case n.Marked(lifecycle.MarkHeldBack, at):
		return false, "held_back: the guard has no room for this node; see `assay guard show`"
	case n.State == lifecycle.Withheld:
		return false, "withheld: the guard has no room for this node; see `assay guard show`"
	}
	return false, fmt.Sprintf("%s: nothing here takes this node out", n.State)
}

// drained waits until no drain of the node is still to be carried out.
func (l *lead) drained(ctx context.Context, node string) error {
	for {
		l.mu.RLock()
		waiting := slices.ContainsFunc(l.st.effectsOf(node), func(e pending) bool { return e.Kind == lifecycle.EffectDrain })
		wake := l.wakeChannel(node)
		l.mu.RUnlock()
		if !waiting {
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.term.Done():
			return errDeposed
		}
	}
}

// releases finds the jobs that Slurm holds only because a prolog of ours turned them away, and that may be released once
// more. A job that a person holds is never among them: its reason differs.
func releases(jobs []slurm.Job, refused map[string]refusal, tries int) []refusal {
	var out []refusal
	for _, j := range jobs {
		r, ok := refused[j.ID]
		if !ok || r.Releases >= tries || !j.HeldByLaunchFailure() || j.Restarts <= r.Restarts {
			continue
		}
		r.Restarts = j.Restarts
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b refusal) int { return strings.Compare(a.Job, b.Job) })
	return out
}
