package coordinator

import (
	"context"
	"maps"
	"time"

	"github.com/assay-gpu/assay/coordinator/killpoint"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
)

// argOrdered marks a power cycle with the time at which it was about to be given to the site's hook, RFC 3339. It cannot be
// taken back, and given twice in a row it would cut off the boot that it began. Who finds the mark of a leader that died
// cannot know whether the hook was ever asked: the node has a third of the reboot's time to boot, and then it is asked again.
const argOrdered = "ordered"

// mayOrder reports whether the power cycle was not ordered yet, or so long ago that it has not worked.
func mayOrder(e pending, now time.Time) bool {
	mark, was := e.Args[argOrdered]
	if !was {
		return true
	}
	at, err := time.Parse(time.RFC3339, mark)
	return err == nil && now.Sub(at) > e.Deadline.Sub(e.Created)/3 && now.Before(e.Deadline)
}

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

// cycle gives one order. It is not ok when this process may not give it, or not now.
func (l *lead) cycle(ctx context.Context, e pending) (outcome, detail string, ok bool) {
	if l.cfg.Power == nil {
		return "failed", "no power-cycle hook is configured", true
	}
	if err := l.wanted(e); err != nil {
		return "skipped", err.Error(), true // it has booted, or its time is over
	}
	if !mayOrder(e, time.Now()) {
		return "", "", false
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
