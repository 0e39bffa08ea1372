package coordinator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/guard"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Policy implements api.Policies.
func (c *Coordinator) Policy(_ context.Context) (out policy.Policy, err error) {
	err = c.read(func(_ *lead, s *state, _ time.Time) error { out = s.policy; return nil })
	return out, err
}

// SetPolicy implements api.Policies: a bad policy is refused whole, with all its faults. A good one holds everywhere, and
// ends a rollout.
func (c *Coordinator) SetPolicy(ctx context.Context, by string, p policy.Policy) (policy.Policy, error) {
	if err := refuse(p); err != nil {
		return policy.Policy{}, err
	}
	l, err := c.leading()
	if err != nil {
		return policy.Policy{}, err
	}
	err = l.do(ctx, func(t *tx) error {
		if err := t.together(p); err != nil {
			return err
		}
		p.Version = t.nextPolicy()
		t.policy, t.rollout, t.governed = p, nil, true
		t.record(wire.HistoryEntry{Event: fmt.Sprintf("policy version=%d mode=%s", p.Version, p.Mode), By: by})
		return nil
	})
	if _, again := api.Repeated(ctx); again && err == nil {
		return c.Policy(ctx)
	}
	return p, err
}

// Guard implements api.Guarder.
func (c *Coordinator) Guard(_ context.Context) (out wire.Guard, err error) {
	err = c.read(func(l *lead, s *state, now time.Time) error {
		shown := guard.New(s.policy.Guard, s.census(), s.guard).Show(now)
		out = wire.Guard{DryRun: s.policy.Guard.DryRun, Schedulable: shown.Schedulable, Budgets: wireBudgets(shown.Budgets), HardHour: shown.HardHour}
		if f := shown.Freezer; f != nil {
			out.Frozen, out.FrozenBy, out.FrozenAt, out.FrozenWhy = true, f.By, f.At, f.Why
		}
		for _, st := range shown.Storms {
			out.Storms = append(out.Storms, fmt.Sprintf("%s on %s since %s", st.Reason, plural(st.Size(), "node"), st.At.Format(time.RFC3339)))
		}
		for _, name := range sortedKeys(s.nodes) {
			if s.nodes[name].Marked(lifecycle.MarkHeldBack, now) {
				out.HeldBack = append(out.HeldBack, name)
			}
		}
		if l.gen.Observe {
			out.Restored = l.gen.At
		}
		out.Permits = len(s.refusals)
		out.Waits = s.waits(now)
		out.Trips = trips(l.history)
		return nil
	})
	return out, err
}

// waits lists what the guard holds back, and what refuses each now.
func (s *state) waits(now time.Time) []wire.Waiting {
	var held []guard.HeldBack
	for _, name := range sortedKeys(s.nodes) {
		if n := s.nodes[name]; n.Marked(lifecycle.MarkHeldBack, now) {
			held = append(held, heldBack(n))
		}
	}
	view := guard.New(s.policy.Guard, s.census(), s.guard)
	var out []wire.Waiting
	var wants []guard.Want
	for _, h := range guard.Next(held) {
		n := s.nodes[h.Node]
		w := wire.Waiting{Node: n.Name, State: string(n.State), Hard: h.Hard, Since: n.Since, Step: "drain"}
		if n.Case != nil {
			w.Case, w.Cause, w.Since = n.Case.ID, n.Case.Cause, n.Case.Opened
		}
		if n.State == lifecycle.Certified && !h.Hard {
			w.Step = "suspend"
		}
		ok, why := view.Room(n.Name, n.Leaf, w.Cause, w.Step, now)
		if w.Why = why; ok {
			w.Why = "there is room: it is next"
		}
		out = append(out, w)
		wants = append(wants, guard.Want{Node: n.Name, Leaf: n.Leaf, Reason: w.Cause, Step: w.Step})
	}
	if s.policy.Guard.DryRun {
		for i, why := range view.Would(wants, now) {
			out[i].Why, out[i].Would = "dry run: it would go on waiting: "+why, why == ""
			if why == "" {
				out[i].Why = "dry run: the " + out[i].Step + " would be done now"
			}
		}
	}
	return out
}

// tripsShown is how many of the guard's trips are shown.
const tripsShown = 20

// trips are the last times that the guard stopped something as a whole, or was stopped or let go by somebody.
func trips(history []wire.HistoryEntry) []string {
	var out []string
	for _, h := range slices.Backward(history) {
		storm := h.Event == "page reason=storm"
		if !storm && !strings.HasPrefix(h.Event, "guard ") && !strings.HasPrefix(h.Event, "restore_lifted ") {
			continue
		}
		text := h.At.Format(time.RFC3339) + "  " + h.Event + " by " + h.By
		if storm {
			text = h.At.Format(time.RFC3339) + "  " + strings.Join(h.Detail, "; ")
		}
		if out = append(out, text); len(out) == tripsShown {
			break
		}
	}
	slices.Reverse(out)
	return out
}

func wireBudgets(bs []guard.Budget) []wire.Budget {
	out := make([]wire.Budget, 0, len(bs))
	for _, b := range bs {
		out = append(out, wire.Budget(b))
	}
	return out
}

// Freeze implements api.Guarder: it stops all automatic action.
func (c *Coordinator) Freeze(ctx context.Context, by, reason string) (wire.Guard, error) {
	return c.turnGuard(ctx, by, "guard freeze reason="+quote(reason), func(b guard.Books, now time.Time) guard.Books { return b.Freeze(by, reason, now) })
}

// Thaw implements api.Guarder: it ends a freeze and every storm.
func (c *Coordinator) Thaw(ctx context.Context, by, reason string) (wire.Guard, error) {
	return c.turnGuard(ctx, by, "guard thaw reason="+quote(reason), func(b guard.Books, _ time.Time) guard.Books { return b.Thaw() })
}

func (c *Coordinator) turnGuard(ctx context.Context, by, event string, turn func(guard.Books, time.Time) guard.Books) (wire.Guard, error) {
	l, err := c.leading()
	if err != nil {
		return wire.Guard{}, err
	}
	err = l.do(ctx, func(t *tx) error {
		was := t.guard
		if t.guard = turn(was, t.now); was.Freezer == nil && t.guard.Freezer == nil && len(was.Storms) == 0 {
			return nil // thawed before
		}
		t.guarded = true
		t.record(wire.HistoryEntry{Event: event, By: by})
		return nil
	})
	if err != nil {
		return wire.Guard{}, err
	}
	return c.Guard(ctx)
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// unsigned leaves a certificate as it is: for transactions that are never committed.
func unsigned(c certificate.Certificate) certificate.Certificate { return c }
