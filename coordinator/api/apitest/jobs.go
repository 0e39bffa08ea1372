package apitest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// GangStatus implements api.Agents.
func (p *Plane) GangStatus(_ context.Context, s wire.GangStatus) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gangs = append(p.gangs, s)
	return nil
}

// Gangs returns the statuses of launches that have come.
func (p *Plane) Gangs() []wire.GangStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.gangs)
}

// SubmitJob implements api.Jobs. A job runs when there are nodes enough, whoever they are.
func (p *Plane) SubmitJob(_ context.Context, by string, ask wire.JobAsk) (wire.Job, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := wire.Job{ID: int64(len(p.jobs) + 1), Name: ask.Name, User: by, Partition: "batch", Account: "all", QOS: "normal", State: "PENDING", Gang: ask.Gang, Submitted: p.Now()}
	names, refused := p.room(ask)
	if j.State, j.Reason, j.Code = "RUNNING", "", ""; refused != "" {
		j.State, j.Reason, j.Code = "PENDING", refused, "Resources"
	} else {
		j.Nodes, j.Started, j.Launch, j.Launches = hostlist.Compress(names), p.Now(), fmt.Sprintf("%d.1", j.ID), 1
	}
	p.jobs = append(p.jobs, j)
	return j, nil
}

// room finds nodes for a job. The caller holds mu.
func (p *Plane) room(ask wire.JobAsk) (names []string, refused string) {
	for name, n := range p.nodes {
		if n.Certificate != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) < ask.Gang.Nodes {
		return nil, fmt.Sprintf("needs %d nodes certified; %d are", ask.Gang.Nodes, len(names))
	}
	return names[:ask.Gang.Nodes], ""
}

// PlanJob implements api.Jobs.
func (p *Plane) PlanJob(_ context.Context, _ string, ask wire.JobAsk, keep bool) (wire.JobPlan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	names, refused := p.room(ask)
	if refused != "" {
		return wire.JobPlan{Refused: refused}, nil
	}
	list := hostlist.Compress(names)
	plan := wire.JobPlan{Nodes: list, Where: []string{"s1: " + list}}
	if keep {
		q := p.question(ask.Gang)
		snap, g, err := q.Load()
		if err != nil {
			return plan, err
		}
		found := scheduler.Place(snap, g)
		plan.Cost, plan.Question = found.Cost, &q
		plan.Nodes, plan.Where = snap.Where(found)
	}
	return plan, nil
}

// question is a gang asked of the nodes there are, all under one leaf. The caller holds mu.
func (p *Plane) question(g scheduler.Gang) scheduler.Question {
	names := slices.Sorted(maps.Keys(p.nodes))
	tree, _ := topo.Parse("SwitchName=s1 Nodes="+hostlist.Compress(names), names) // one leaf has no fault
	f, shape := scheduler.NewFleet(tree, p.Now()), topo.NewShape("H100", 8, true)
	for i, name := range tree.Nodes {
		if c := p.nodes[name].Certificate; c != nil && f.See(int32(i), shape, 0) == nil {
			f.Certify(int32(i), scheduler.Certificate{Serial: c.Serial, Level: c.Level, GPUs: shape.All(), Issued: c.IssuedAt, Expires: c.Expires})
		}
	}
	g.ID = "dry run"
	return scheduler.Keep(f.Snapshot(), g)
}

// Jobs implements api.Jobs.
func (p *Plane) Jobs(_ context.Context, all bool) ([]wire.Job, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []wire.Job
	for _, j := range p.jobs {
		if all || j.Ended.IsZero() {
			out = append(out, j)
		}
	}
	return out, nil
}

// Job implements api.Jobs.
func (p *Plane) Job(_ context.Context, id int64) (wire.Job, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id < 1 || id > int64(len(p.jobs)) {
		return wire.Job{}, api.Errorf(404, "job %d: not found", id)
	}
	return p.jobs[id-1], nil
}

// OrderJob implements api.Jobs.
func (p *Plane) OrderJob(ctx context.Context, by, verb string, id int64, _ wire.JobVerb) (wire.Job, error) {
	j, err := p.Job(ctx, id)
	if err != nil {
		return j, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch verb {
	case "cancel":
		j.State, j.Reason, j.Ended = "CANCELLED", "cancelled by "+by, p.Now()
	case "hold":
		j.Code, j.Reason = "JobHeldUser", "held by its user"
	case "release":
		j.Code, j.Reason = "", ""
	case "requeue":
		j.State, j.Code, j.Reason, j.Nodes, j.Ended = "PENDING", "", "requeued by "+by, "", time.Time{}
	}
	p.jobs[id-1] = j
	return j, nil
}

// JobLogs implements api.Jobs.
func (p *Plane) JobLogs(ctx context.Context, id int64) (wire.JobLogs, error) {
	j, err := p.Job(ctx, id)
	if err != nil || j.Launch == "" {
		return wire.JobLogs{Job: id}, err
	}
	return wire.JobLogs{Job: id, Launch: j.Launch, Ranks: []wire.RankOutput{{Rank: 0, Node: "gpu001", Text: "step 1\nstep 2\n"}, {Rank: 1, Node: "gpu002", Cut: true, Text: "ok\n"}}}, nil
}

// FindJob implements api.Jobs. There are no arrays here.
func (p *Plane) FindJob(_ context.Context, text string) (int64, error) {
	return 0, api.Errorf(404, "job %s: not found", text)
}

// SubmitJobs implements api.Jobs. A job of more nodes than there are is refused, so that stories see a fault.
func (p *Plane) SubmitJobs(ctx context.Context, by string, b wire.Batch) ([]wire.BatchAnswer, error) {
	var out []wire.BatchAnswer
	for _, j := range b.Jobs {
		key := fmt.Sprint(b.Key, " ", j.Line)
		p.mu.Lock()
		id, again := p.batches[key]
		p.mu.Unlock()
		if again {
			out = append(out, wire.BatchAnswer{Line: j.Line, ID: id, Again: true})
			continue
		}
		if j.Ask.Gang.Nodes > len(p.nodes) {
			out = append(out, wire.BatchAnswer{Line: j.Line, Error: fmt.Sprintf("not submitted: asks %d nodes; partition batch allows %d (PartitionNodeLimit)", j.Ask.Gang.Nodes, len(p.nodes))})
			continue
		}
		made, err := p.SubmitJob(ctx, by, j.Ask)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		if p.batches == nil {
			p.batches = map[string]int64{}
		}
		p.batches[key] = made.ID
		p.mu.Unlock()
		out = append(out, wire.BatchAnswer{Line: j.Line, ID: made.ID})
	}
	return out, nil
}
