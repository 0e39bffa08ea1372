package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
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
	return p, err
}

// Guard implements api.Guarder.
func (c *Coordinator) Guard(_ context.Context) (out wire.Guard, err error) {
	err = c.read(func(_ *lead, s *state, now time.Time) error {
		shown := guard.New(s.policy.Guard, s.census(), s.guard).Show(now)
		out = wire.Guard{Schedulable: shown.Schedulable, Budgets: wireBudgets(shown.Budgets), HardHour: shown.HardHour}
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
		return nil
	})
	return out, err
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
		t.guard, t.guarded = turn(t.guard, t.now), true
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
