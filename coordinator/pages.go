package coordinator

import (
	"context"
	"time"

	"github.com/assay-gpu/assay/coordinator/killpoint"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// pageDeadline bounds one call of the page webhook.
const pageDeadline = 5 * time.Second

// pageOnce pages unless the same key was paged within the hour.
func (t *tx) pageOnce(key, reason, text string) {
	if t.firstPage(key) {
		t.page("", reason, text)
	}
}

// carryPages carries out what goes to people.
func (l *lead) carryPages(ctx context.Context) error {
	for l.settle(ctx); ctx.Err() == nil; pause(ctx, 100*time.Millisecond) {
		for _, e := range l.pendingOf(lifecycle.EffectPage) {
			l.carryPage(ctx, e)
		}
	}
	return context.Cause(ctx)
}

func (l *lead) carryPage(ctx context.Context, e pending) {
	if !l.term.Valid() {
		return
	}
	reason, text := e.Args["reason"], e.Args["text"]
	killpoint.Here("page/before")
	outcome, detail := "done", ""
	if l.cfg.Pager != nil {
		pageCtx, cancel := context.WithTimeout(ctx, pageDeadline)
		if err := l.cfg.Pager.Page(pageCtx, e.Node, reason, text); err != nil {
			outcome, detail = "failed", err.Error()
			l.log.Error("page not delivered", "node", e.Node, "reason", reason, "err", err)
		}
		cancel()
	}
	killpoint.Here("page/done")
	l.metrics.Page(reason)
	l.log.Warn("page", "node", e.Node, "reason", reason, "text", text)
	l.ended(ctx, e, outcome, detail)
}

// pendingOf lists the pending effects of one kind, oldest first.
func (l *lead) pendingOf(kind string) []pending {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var out []pending
	for _, e := range l.st.effects {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	sortPending(out)
	return out
}

// ended ticks an effect off.
func (l *lead) ended(ctx context.Context, e pending, outcome, detail string) {
	l.metrics.EffectEnded(e.Kind, outcome, time.Since(e.Created))
	err := l.do(ctx, func(t *tx) error {
		if _, still := t.base.effects[e.ID]; !still {
			return nil
		}
		return t.endEffect(e, outcome, detail, nil)
	})
	if err != nil && ctx.Err() == nil {
		l.log.Error("effect not ticked off", "node", e.Node, "effect", e.ID, "kind", e.Kind, "err", err)
	}
}

// settle waits before the first effect of a term, so that nothing which the last leader began is still on its way.
func (l *lead) settle(ctx context.Context) { pause(ctx, l.cfg.Settle) }

// wirePending are a node's pending effects for people.
func wirePending(es []pending) []wire.Effect {
	var out []wire.Effect
	for _, e := range es {
		out = append(out, e.Effect)
	}
	return out
}
