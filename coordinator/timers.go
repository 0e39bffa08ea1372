package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/guard"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// tickEvery is how often deadlines, expiries, silence and returned budget are looked at.
const tickEvery = time.Second

// keepTime turns the passing of time into events.
func (l *lead) keepTime(ctx context.Context) error {
	for pause(ctx, tickEvery) {
		work, mass := l.due(time.Now())
		for _, key := range sortedKeys(mass) {
			work = append(work, func(t *tx) error { t.pageOnce("mass_silence "+key, "mass_silence", mass[key]); return nil })
		}
		for _, do := range work {
			if err := l.do(ctx, do); err != nil && ctx.Err() == nil {
				l.log.Warn("timer", "err", err)
			}
		}
	}
	return context.Cause(ctx)
}

// due lists the work that time has brought. Each piece looks again at the state when its turn comes.
func (l *lead) due(wall time.Time) (work []func(*tx) error, mass map[string]string) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	now := leaderTime(wall, l.st.counters.Time)
	event := func(name string, when func(lifecycle.Node, time.Time) bool, ev func(lifecycle.At) lifecycle.Event) {
		work = append(work, func(t *tx) error {
			if n, ok := t.node(name); !ok || !when(n, t.now) {
				return nil
			}
			return t.apply(name, ev(lifecycle.At{Time: t.now}), "assay")
		})
	}
	var silent []quiet
	lostBefore := map[string]bool{}
	var waiting []guard.HeldBack
	for _, name := range sortedKeys(l.st.nodes) {
		n := l.st.nodes[name]
		if n.State == lifecycle.Retired {
			continue
		}
		if deadlinePassed(n, now) {
			event(name, deadlinePassed, func(at lifecycle.At) lifecycle.Event { return lifecycle.DeadlinePassed{At: at} })
		}
		if expired(n, now) {
			event(name, expired, func(at lifecycle.At) lifecycle.Event { return lifecycle.Expired{At: at} })
		}
		if n.Marked(lifecycle.MarkHeldBack, now) {
			waiting = append(waiting, heldBack(n))
		}
		if n.Lost {
			lostBefore[name] = true
		}
		if n.State != lifecycle.RMA && l.silent(n, wall) {
			silent = append(silent, quiet{name, n.Leaf})
		}
	}
	for _, h := range guard.Next(waiting) {
		event(h.Node, func(n lifecycle.Node, t time.Time) bool { return n.Marked(lifecycle.MarkHeldBack, t) },
			func(at lifecycle.At) lifecycle.Event { return lifecycle.Room{At: at} })
	}
	census := l.st.census()
	lost, mass := lostNow(silent, lostBefore, census.Leaf, census.Schedulable, l.st.policy.Lifecycle)
	for _, name := range lost {
		event(name, func(n lifecycle.Node, _ time.Time) bool { return !n.Lost }, func(at lifecycle.At) lifecycle.Event { return lifecycle.Silent{At: at} })
	}
	if len(l.st.launches) > 0 {
		work = append(work, l.stepLaunches)
	}
	if old := oldJobs(l.st.jobs); len(old) > 0 {
		work = append(work, func(t *tx) error {
			for _, id := range old {
				t.dropJob(id)
			}
			return nil
		})
	}
	for _, id := range sortedKeys(l.st.effects) {
		e := l.st.effects[id]
		if stands, why := stands(l.st.nodes[e.Node], e); !stands && agentCarries(e.Kind, l.cfg.Slurm != nil) {
			work = append(work, func(t *tx) error {
				if _, still := t.base.effects[id]; !still {
					return nil
				}
				return t.endEffect(e, "skipped", why, nil)
			})
		} else if l.overdue(e, now) {
			work = append(work, func(t *tx) error {
				if _, still := t.base.effects[id]; !still {
					return nil
				}
				return t.endEffect(e, "failed", "no answer by "+e.Deadline.Format(time.RFC3339), nil)
			})
		}
	}
	for hash, r := range l.st.tokens {
		if now.After(r.Expires) {
			work = append(work, func(t *tx) error { t.dropToken(hash); return nil })
		}
	}
	for _, id := range sortedKeys(l.st.tickets) {
		if l.st.tickets[id].Overdue(now) {
			work = append(work, func(t *tx) error { t.remind(id); return nil })
		}
	}
	if old := oldCases(l.st.cases, now); len(old) > 0 {
		work = append(work, func(t *tx) error {
			for _, id := range old {
				t.extra = append(t.extra, store.Op{Key: keyCases + id, Delete: true})
				t.forgotten = append(t.forgotten, id)
			}
			return nil
		})
	}
	if old := oldOnces(l.st.onces, now); len(old) > 0 {
		work = append(work, func(t *tx) error {
			for _, id := range old {
				t.onces[id] = nil
			}
			return nil
		})
	}
	work = append(work, l.drillWork(now)...)
	return append(work, l.promotion(now)...), mass
}

// How long closed cases are kept, and how many at the most.
const (
	casesKept     = 180 * 24 * time.Hour
	casesKeptMost = 5_000
)

// oldCases lists closed cases that need not be kept, oldest first, no more than one transaction takes.
func oldCases(cases map[string]wire.Case, now time.Time) []string {
	var closed []wire.Case
	for _, c := range cases {
		if !c.Closed.IsZero() {
			closed = append(closed, c)
		}
	}
	slices.SortFunc(closed, func(a, b wire.Case) int { return cmp.Or(a.Closed.Compare(b.Closed), strings.Compare(a.ID, b.ID)) })
	var old []string
	for i, c := range closed {
		if len(old) < releasesAtOnce && (now.Sub(c.Closed) > casesKept || len(closed)-i > casesKeptMost) {
			old = append(old, c.ID)
		}
	}
	return old
}

func deadlinePassed(n lifecycle.Node, t time.Time) bool {
	due := lifecycle.Due(n)
	return !due.IsZero() && !t.Before(due)
}

func expired(n lifecycle.Node, t time.Time) bool {
	return n.Certificate != nil && !certificate.Holds(*n.Certificate, t) && !n.Marked(lifecycle.MarkLapsed, t)
}

func heldBack(n lifecycle.Node) guard.HeldBack {
	h := guard.HeldBack{Node: n.Name, Since: n.Since}
	if n.Case != nil {
		h.Hard, h.Action = n.Case.Hard, n.Case.Action
	} else {
		h.Action = checks.Drain
	}
	return h
}

// overdue reports whether an effect's time is up. Those that Slurm carries are tried until they hold or are not wanted.
func (l *lead) overdue(e pending, now time.Time) bool {
	return !e.Deadline.IsZero() && now.After(e.Deadline) && agentCarries(e.Kind, l.cfg.Slurm != nil)
}

// silent reports whether the node has said nothing for too long: not before this leader has led two timeouts, nor after an
// announced stop, nor while it is rebooting.
func (l *lead) silent(n lifecycle.Node, wall time.Time) bool {
	timeout := l.st.policy.Lifecycle.HeartbeatTimeout.D()
	if n.BootID == "" || wall.Sub(l.started) < 2*timeout {
		return false
	}
	if v, ok := l.slurm.of(n.Name); ok && v.Node.Away() {
		return false
	}
	b, ok := l.beats.of(n.Name)
	return !ok || !b.stopping && wall.Sub(b.at) > timeout
}

// leaderNow is leader time for reading.
func leaderNow(s *state) time.Time { return leaderTime(time.Now(), s.counters.Time) }

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
