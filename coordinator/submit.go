package coordinator

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/queue"
)

// Bounds on a job: what one store transaction and one desired state can carry.
const (
	scriptMost = 64 << 10 // bytes
	envMost    = 32 << 10 // bytes, all variables together
	jobsKept   = 5_000    // that have ended
)

// notOurs refuses jobs where Slurm runs them.
func (l *lead) notOurs() error {
	if l.cfg.Slurm == nil {
		return nil
	}
	return &refusedError{"jobs of this fleet are Slurm's", "submit with sbatch; assay schedules where assayd runs with --workload-manager none"}
}

// SubmitJob implements api.Jobs.
func (c *Coordinator) SubmitJob(ctx context.Context, by string, ask wire.JobAsk) (wire.Job, error) {
	l, err := c.leading()
	if err != nil {
		return wire.Job{}, err
	}
	if err := l.notOurs(); err != nil {
		return wire.Job{}, err
	}
	script := ask.Script
	ask.Script = ""
	if err := sound(&ask, script); err != nil {
		return wire.Job{}, err
	}
	after, err := queue.ParseDependencies(ask.After)
	if err != nil {
		return wire.Job{}, &invalidError{err.Error(), "write it as afterok:12,afterany:13"}
	}
	var made job
	err = l.do(ctx, func(t *tx) error {
		for _, a := range after.List {
			if _, ok := t.job(a.Job); !ok {
				return &invalidError{fmt.Sprintf("dependency %q: there is no job %d", ask.After, a.Job), "`assay job list --all` shows the jobs that are kept"}
			}
		}
		t.counters.Job++
		made = newJob(t.counters.Job, by, ask, after, t.now)
		t.setJob(made)
		t.scripts[made.ID] = script
		t.record(wire.HistoryEntry{Event: fmt.Sprintf("job %d submitted name=%s nodes=%d", made.ID, strconv.Quote(made.Name), made.Gang.Nodes), By: by})
		return nil
	})
	return made.Job, err
}

func newJob(id int64, by string, ask wire.JobAsk, after queue.Dependencies, now time.Time) job {
	g := ask.Gang
	g.ID = strconv.FormatInt(id, 10)
	j := job{Ask: ask, Job: wire.Job{ID: id, Name: ask.Name, User: by, Partition: ask.Partition, Account: ask.Account, QOS: ask.QOS,
		State: jobPending, Gang: g, Submitted: now}}
	j.Queue = queue.Job{ID: id, Name: ask.Name, Account: ask.Account, Partition: ask.Partition, QOS: ask.QOS, Nodes: g.Nodes, GPUsPerNode: g.GPUs,
		Limit: int64(g.Limit / time.Second), Submit: now.Unix(), Nice: ask.Nice, HeldUser: ask.Hold, Requeue: ask.Requeue, After: after}
	if !ask.Begin.IsZero() {
		j.Queue.Begin = ask.Begin.Unix()
	}
	return j
}

// sound fills in what was left out and refuses what cannot be.
func sound(ask *wire.JobAsk, script string) error {
	bad := func(hint, format string, args ...any) error { return &invalidError{fmt.Sprintf(format, args...), hint} }
	if ask.Partition == "" {
		ask.Partition = "batch"
	}
	if ask.Account == "" {
		ask.Account = everybody
	}
	if ask.QOS == "" {
		ask.QOS = "normal"
	}
	if ask.Name == "" {
		ask.Name = "job"
	}
	env := 0
	for _, e := range ask.Env {
		name, _, ok := strings.Cut(e, "=")
		if !ok || name == "" || strings.ContainsAny(e, "\x00") {
			return bad("write NAME=VALUE", "environment %.60q is no variable", e)
		}
		env += len(e)
	}
	switch {
	case ask.Partition != "batch":
		return bad("leave it out, or name batch", "partition %.60q: this fleet has one, batch", ask.Partition)
	case ask.QOS != "normal":
		return bad("leave it out, or name normal", "QOS %.60q: this fleet has one, normal", ask.QOS)
	case ask.Account != everybody:
		return bad("leave it out", "account %.60q: this fleet keeps no accounts yet; all jobs are charged to %s", ask.Account, everybody)
	case strings.TrimSpace(script) == "":
		return bad("give a script whose first line is #!/bin/sh or another program", "the script is empty")
	case len(script) > scriptMost:
		return bad("call a program from it", "the script has %d bytes; at most %d", len(script), scriptMost)
	case env > envMost:
		return bad("put them into the script", "the environment has %d bytes; at most %d", env, envMost)
	case len(ask.Name) > 128 || strings.ContainsAny(ask.Name, "\n\x00"):
		return bad("one line of at most 128 bytes", "job name %.60q", ask.Name)
	case strings.ContainsAny(ask.Dir+ask.Output, "\x00"):
		return bad("name a path", "a path with a zero byte")
	case ask.Dir != "" && !path.IsAbs(ask.Dir):
		return bad("name an absolute path: it must be there on every node", "working directory %.60q", ask.Dir)
	case ask.Gang.Nodes > 100_000 || ask.Gang.Ranks > 1024:
		return bad("at most 100,000 nodes, and 1,024 ranks on each", "%d nodes with %d ranks each", ask.Gang.Nodes, ask.Gang.Ranks)
	case ask.Gang.Share.Kind != scheduler.NoShare:
		return bad("ask for whole GPUs", "parts of GPUs are placed but not yet started")
	}
	g := ask.Gang
	g.ID = ask.Name
	if err := g.Valid(); err != nil {
		return bad("see `assay job submit --help`", "%v", err)
	}
	return nil
}

// Jobs implements api.Jobs: oldest first, those that have ended only with all.
func (c *Coordinator) Jobs(_ context.Context, all bool) (out []wire.Job, err error) {
	err = c.read(func(l *lead, s *state, _ time.Time) error {
		for _, id := range sortedKeys(s.jobs) {
			if j := s.jobs[id]; all || !j.over() {
				out = append(out, l.viewJob(j))
			}
		}
		return nil
	})
	return out, err
}

// Job implements api.Jobs.
func (c *Coordinator) Job(_ context.Context, id int64) (out wire.Job, err error) {
	err = c.read(func(l *lead, s *state, _ time.Time) error {
		j, ok := s.jobs[id]
		if !ok {
			return unknownJob(id)
		}
		out = l.viewJob(j)
		if out.Code == string(queue.Resources) {
			out.Reason = l.lacking(j, out.Reason)
		}
		return nil
	})
	return out, err
}

// lacking says in numbers what a job that waits for resources lacks, as the planner last saw the fleet.
func (l *lead) lacking(j job, otherwise string) string {
	l.outlooks.mu.RLock()
	snap := l.outlooks.snap
	l.outlooks.mu.RUnlock()
	if snap == nil {
		return otherwise
	}
	plan := scheduler.Place(snap, j.Gang)
	if plan.Refused == nil {
		return otherwise
	}
	return snap.Why(j.Gang, plan.Refused)
}

func unknownJob(id int64) error {
	return &notFoundError{fmt.Sprintf("job %d", id), "`assay job list --all` shows the jobs that are kept"}
}

// viewJob adds what the planner thinks of a job that waits.
func (l *lead) viewJob(j job) wire.Job {
	v := j.Job
	if j.State == jobPending {
		l.outlooks.mu.RLock()
		defer l.outlooks.mu.RUnlock()
		if o, ok := l.outlooks.by[j.ID]; ok {
			v.Reason, v.Code = o.why.Text, string(o.why.Code)
			if o.planned > 0 {
				v.Planned = time.Unix(o.planned, 0).UTC()
			}
		}
	}
	return v
}

// OrderJob implements api.Jobs.
func (c *Coordinator) OrderJob(ctx context.Context, by, verb string, id int64, v wire.JobVerb) (wire.Job, error) {
	l, err := c.leading()
	if err != nil {
		return wire.Job{}, err
	}
	err = l.do(ctx, func(t *tx) error {
		j, ok := t.job(id)
		if !ok {
			return unknownJob(id)
		}
		if j.over() {
			return &refusedError{fmt.Sprintf("job %d has ended: %s", id, j.State), "`assay job list` shows the jobs that go on"}
		}
		switch verb {
		case "cancel":
			return t.cancelJob(j, by, v.Reason)
		case "hold", "release":
			if j.State != jobPending {
				return &refusedError{fmt.Sprintf("job %d is %s: only a job that waits can be held", id, strings.ToLower(j.State)), "cancel it instead"}
			}
			j.Queue.HeldUser = verb == "hold"
			if verb == "release" {
				j.Queue.HeldAdmin, j.Queue.Attempts, j.Queue.NotBefore = false, 0, 0
			}
		default:
			return &invalidError{fmt.Sprintf("%q is no order to a job", verb), "orders are cancel, hold and release"}
		}
		t.setJob(j)
		t.record(wire.HistoryEntry{Event: fmt.Sprintf("job %d %s", id, verb), By: by, Detail: detail(v.Reason)})
		return nil
	})
	if err != nil {
		return wire.Job{}, err
	}
	return c.Job(ctx, id)
}

// cancelJob ends a job that waits, and has a launch end on its nodes.
func (t *tx) cancelJob(j job, by, reason string) error {
	why := "cancelled by " + by
	if reason != "" {
		why += ": " + reason
	}
	t.record(wire.HistoryEntry{Event: fmt.Sprintf("job %d cancel", j.ID), By: by, Detail: detail(reason)})
	if l, ok := t.launch(j.Launch); ok && j.State != jobPending {
		l.Launch = l.Cancel(why, t.now)
		t.setLaunch(l)
		j.State, j.Reason = jobEnding, why
		t.setJob(j)
		return nil
	}
	if j.State != jobPending {
		return nil // its launch has just ended; what follows is being written
	}
	j.State, j.Reason, j.Code, j.Ended = queue.Cancelled.String(), why, "", t.now
	t.setJob(j)
	return nil
}

// JobLogs implements api.Jobs.
func (c *Coordinator) JobLogs(_ context.Context, id int64) (out wire.JobLogs, err error) {
	err = c.read(func(_ *lead, s *state, _ time.Time) error {
		if _, ok := s.jobs[id]; !ok {
			return unknownJob(id)
		}
		out = s.logs[id]
		out.Job, out.Ranks = id, slices.Clone(out.Ranks)
		return nil
	})
	return out, err
}

// PlanJob implements api.Jobs: where a job would start now, or why it would not. Nothing is kept.
func (c *Coordinator) PlanJob(_ context.Context, ask wire.JobAsk) (wire.JobPlan, error) {
	l, err := c.leading()
	if err != nil {
		return wire.JobPlan{}, err
	}
	if err := sound(&ask, "dry run"); err != nil {
		return wire.JobPlan{}, err
	}
	g := ask.Gang
	g.ID = ask.Name
	l.mu.RLock()
	now := leaderNow(l.st)
	tree := treeOf(l.cfg.Topology, l.st.nodes)
	var nodes []lifecycle.Node
	for _, name := range sortedKeys(l.st.nodes) {
		nodes = append(nodes, l.st.nodes[name])
	}
	var running []launch
	for _, id := range sortedKeys(l.st.launches) {
		running = append(running, l.st.launches[id])
	}
	l.mu.RUnlock()
	if len(nodes) == 0 {
		return wire.JobPlan{Refused: "no node is enrolled"}, nil
	}
	f := scheduler.NewFleet(tree, now)
	for _, n := range nodes {
		i, ok := tree.Node(n.Name)
		if !ok {
			continue
		}
		if err := feed(f, i, n, now); err != nil {
			return wire.JobPlan{}, err
		}
		if len(n.Jobs) > 0 && l.cfg.Slurm != nil {
			f.Bar(i, scheduler.Bar{Why: "in use by Slurm job " + n.Jobs[0].ID})
		}
	}
	for _, x := range running {
		if err := f.Start(&scheduler.Running{ID: x.ID, Nodes: takes(tree, x.Launch), Start: x.Reserved, End: endOf(x.Reserved, x.Limit)}); err != nil {
			return wire.JobPlan{}, err
		}
	}
	return describePlan(f.View(), g), nil
}

func describePlan(s *scheduler.Snapshot, g scheduler.Gang) wire.JobPlan {
	plan := scheduler.Place(s, g)
	out := wire.JobPlan{Cost: plan.Cost}
	if !plan.OK() {
		out.Refused = s.Why(g, plan.Refused)
		return out
	}
	tree := s.Tree()
	var names []string
	byLeaf := map[string][]string{}
	for _, t := range plan.Nodes {
		name, leaf := tree.Nodes[t.Node], tree.Leaf[t.Node]
		names = append(names, name)
		sw := tree.Switches[leaf].Name
		byLeaf[sw] = append(byLeaf[sw], name)
	}
	out.Nodes = hostlist.Compress(names)
	for _, sw := range sortedKeys(byLeaf) {
		out.Where = append(out.Where, sw+": "+hostlist.Compress(byLeaf[sw]))
	}
	return out
}

// oldJobs lists jobs that have ended and need not be kept, oldest first, no more than one transaction takes.
func oldJobs(jobs map[int64]job) []int64 {
	var ended []int64
	if len(jobs) <= jobsKept {
		return nil
	}
	for id, j := range jobs {
		if j.over() {
			ended = append(ended, id)
		}
	}
	slices.Sort(ended)
	return ended[:min(max(len(ended)-jobsKept, 0), releasesAtOnce)]
}
