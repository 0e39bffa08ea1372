package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"maps"

	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// PlanJob implements api.Jobs: where a job would start now, or why it would not. Nothing is kept. It asks a planner of its
// own, made from what is committed, so that it says what the real one would if the job stood first. keep adds the question itself, to be asked again elsewhere.
func (c *Coordinator) PlanJob(_ context.Context, by string, ask wire.JobAsk, keep bool) (wire.JobPlan, error) {
	l, err := c.leading()
	if err != nil {
		return wire.JobPlan{}, err
	}
	if err := sound(&ask, "dry run"); err != nil {
		return wire.JobPlan{}, err
	}
	after, err := queue.ParseDependencies(ask.After)
	if err != nil {
		return wire.JobPlan{}, &invalidError{err.Error(), "write it as afterok:12,afterany:13"}
	}
	l.mu.RLock()
	now := leaderNow(l.st)
	s := *l.st // its maps may not be looked at without the lock
	s.nodes, s.jobs, s.launches, s.arrays = maps.Clone(s.nodes), maps.Clone(s.jobs), maps.Clone(s.launches), maps.Clone(s.arrays)
	l.mu.RUnlock()
	if len(s.nodes) == 0 {
		return wire.JobPlan{Refused: "no node is enrolled"}, nil
	}
	where, why := s.book.Whole().Complete(by, rules.Place{Partition: ask.Partition, Account: ask.Account, QOS: ask.QOS})
	if why.Code != queue.NoReason {
		return wire.JobPlan{}, notTaken(why)
	}
	ask.Partition, ask.Account, ask.QOS = where.Partition, where.Account, where.QOS
	p := newPlanner(slog.New(slog.DiscardHandler))
	p.extra = []rules.Member{{Account: ask.Account, User: by}}
	p.now = now.Unix()
	if err := p.rebuild(&s, l.cfg.Topology, now); err != nil {
		return wire.JobPlan{}, err
	}
	if l.cfg.Slurm != nil {
		for name, n := range s.nodes {
			if i, ok := p.tree.Node(name); ok && len(n.Jobs) > 0 {
				p.cycle.Fleet.Bar(i, scheduler.Bar{Why: "in use by Slurm job " + n.Jobs[0].ID})
			}
		}
	}
	p.cycle.Reserve(p.now)
	id := s.counters.Job + 1
	j := newJob(id, entrant{by: by, ask: ask}, after, now, s.mostGPUs)
	j.Queue.HeldUser = false
	p.wishes[id] = j.Gang
	if err := p.cycle.Queue.Submit(j.Queue, p.now); err != nil {
		var refused *queue.RefusedError
		if errors.As(err, &refused) {
			return wire.JobPlan{Refused: sentence(refused.Reason)}, nil
		}
		return wire.JobPlan{}, err
	}
	q := p.cycle.Queue.Job(id)
	var plan wire.JobPlan
	for i, name := range (rules.Place{Partition: ask.Partition}).Partitions() {
		p.cycle.Queue.Choose(id, name)
		in := p.dryRun(q, keep)
		if i == 0 || in.Refused == "" {
			plan = in
		}
		if in.Refused == "" {
			break
		}
	}
	if q.Begin > p.now && plan.Refused == "" {
		plan.Refused = "begins at " + ask.Begin.Format("2006-01-02T15:04:05Z07:00") + ", as asked; its nodes are free now"
	}
	return plan, nil
}

// dryRun says where q would start in its partition.
func (p *planner) dryRun(q *queue.Job, keep bool) wire.JobPlan {
	if r := p.cycle.Queue.Budget().Admit(q, p.now); r.Code != queue.NoReason {
		return wire.JobPlan{Refused: sentence(r)}
	}
	g := p.cycle.Gang(q.ID)
	plan := describePlan(p.cycle.Fleet.View(), g)
	if keep {
		kept := scheduler.Keep(p.cycle.Fleet.View(), g)
		plan.Question = &kept
	}
	return plan
}

// sentence is a reason with Slurm's word after it.
func sentence(r queue.Reason) string { return r.Text + " (" + string(r.Code) + ")" }

func describePlan(s *scheduler.Snapshot, g scheduler.Gang) wire.JobPlan {
	plan := scheduler.Place(s, g)
	out := wire.JobPlan{Cost: plan.Cost}
	if !plan.OK() {
		out.Refused = s.Why(g, plan.Refused)
		return out
	}
	out.Nodes, out.Where = s.Where(plan)
	return out
}
