package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/cycle"
)

// settleJobs asks the queue what follows from each launch that is over, and has it written.
func (l *lead) settleJobs(ctx context.Context, p *planner) {
	for id, e := range p.endings {
		delete(p.endings, id)
		p.cycle.Fleet.End(cycle.ID(id))
		res, err := p.cycle.Queue.End(id, e)
		if err != nil {
			l.log.Error("planner", "job", id, "err", err)
			p.tree = nil
			continue
		}
		q := *p.cycle.Queue.Job(id)
		err = l.do(ctx, func(t *tx) error {
			j, ok := t.job(id)
			if !ok || j.Ending == nil {
				return nil
			}
			j.Ending, j.Queue, j.Exit = nil, q, e.Exit
			if res.Requeued {
				j.State = jobPending
				j.waitsAgain()
			} else {
				j.State, j.Ended = q.State.String(), t.now
			}
			if j.Code = string(q.Why.Code); q.Why.Text != "" {
				j.Reason = q.Why.Text
			}
			t.setJob(j)
			t.record(wire.HistoryEntry{Event: fmt.Sprintf("job %d %s", id, j.State), By: "assay", Detail: detail(q.Why.Text)})
			return nil
		})
		if err != nil && ctx.Err() == nil {
			l.log.Error("planner", "job", id, "err", err)
			p.tree = nil
		}
	}
}

func detail(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// settleGone has written what the queue itself has ended: jobs that can no longer meet their deadline.
func (l *lead) settleGone(ctx context.Context, p *planner) {
	for _, id := range p.cycle.Queue.Gone() {
		q := *p.cycle.Queue.Job(id)
		err := l.do(ctx, func(t *tx) error {
			j, ok := t.job(id)
			if !ok || j.State != jobPending {
				return nil
			}
			j.Queue, j.State, j.Ended, j.Reason, j.Code = q, q.State.String(), t.now, q.Why.Text, string(q.Why.Code)
			t.setJob(j)
			t.record(wire.HistoryEntry{Event: fmt.Sprintf("job %d %s", id, j.State), By: "assay", Detail: detail(q.Why.Text)})
			return nil
		})
		if err != nil && ctx.Err() == nil {
			l.log.Error("planner", "job", id, "err", err)
			p.tree = nil
		}
	}
}

// How often what was used is written, and of how many jobs at most it is told since when their age counts.
const (
	saveUsageEvery = 5 * time.Minute // Slurm's PriorityCalcPeriod
	accruesKept    = 20_000
)

// saveUsage writes what was used, so that a new leader goes on from it, and forgets reservations that are over. What is used
// between two writes it works out from the jobs themselves.
func (l *lead) saveUsage(ctx context.Context, p *planner) {
	wall := time.Now()
	if p.tree == nil || wall.Sub(p.saved) < saveUsageEvery {
		return
	}
	first := p.saved.IsZero()
	p.saved = wall
	if first && p.resumed { // nothing new yet: the term has just begun
		return
	}
	u := usage{Usage: p.cycle.Queue.Usage(p.now), Accrue: map[int64]int64{}}
	for _, id := range p.cycle.Queue.Pending() {
		if j := p.cycle.Queue.Job(id); j.Accrue != j.Submit && len(u.Accrue) < accruesKept {
			u.Accrue[id] = j.Accrue
		}
	}
	err := l.do(ctx, func(t *tx) error {
		t.usage = &u
		t.put(keyUsage, u)
		for _, name := range sortedKeys(t.book.Reservations) {
			if r := t.book.Reservations[name]; r.Over(t.now.Unix()) && len(t.extra) < rulesAtOnce {
				b := t.book.Clone()
				delete(b.Reservations, name)
				t.setBook(b)
				t.extra = append(t.extra, store.Op{Key: keyReserved + name, Delete: true})
				t.record(wire.HistoryEntry{Event: "reservation " + name + " is over", By: "assay"})
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		l.log.Warn("what was used is not written", "err", err)
	}
}
