package coordinator

import (
	"context"
	"maps"
	"time"

	"github.com/assay-gpu/assay/coordinator/killpoint"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
)

// argOrdered marks a power cycle that was given to the site's hook. It cannot be taken back and must not be given twice:
// whoever finds the mark takes it as done, and the deadline of the reboot says whether it worked.
const argOrdered = "ordered"

// carryPower carries out power cycles by the site's own hook, one after the other.
func (l *lead) carryPower(ctx context.Context) error {
	for l.settle(ctx); ctx.Err() == nil; pause(ctx, 200*time.Millisecond) {
		for _, e := range l.pendingOf(lifecycle.EffectPowerCycle) {
			if outcome, detail, ok := l.cycle(ctx, e); ok {
				l.ended(ctx, e, outcome, detail)
			}
		}
	}
	return context.Cause(ctx)
}

// cycle gives one order. It is not ok when this process may not give it.
func (l *lead) cycle(ctx context.Context, e pending) (outcome, detail string, ok bool) {
	if l.cfg.Power == nil {
		return "failed", "no power-cycle hook is configured", true
	}
	if e.Args[argOrdered] != "" {
		return "done", "ordered before this process led", true
	}
	if err := l.wanted(e); err != nil {
		return "skipped", err.Error(), true
	}
	err := l.do(ctx, func(t *tx) error {
		marked := e
		marked.Args = maps.Clone(e.Args)
		if marked.Args == nil {
			marked.Args = map[string]string{}
		}
		marked.Args[argOrdered] = t.now.Format(time.RFC3339)
		t.effects[e.ID] = &marked
		return nil
	})
	if err != nil || !l.term.Valid() {
		return "", "", false
	}
	killpoint.Here("power_cycle/before")
	defer killpoint.Here("power_cycle/done")
	if err := l.cfg.Power.Cycle(ctx, e.Node); err != nil {
		return "failed", err.Error(), true
	}
	return "done", "", true
}
