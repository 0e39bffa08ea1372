package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/rules"
	"github.com/assay-gpu/assay/scheduler/sbatch"
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

// SubmitJob implements api.Jobs. Of an array it returns the array.
func (c *Coordinator) SubmitJob(ctx context.Context, by string, ask wire.JobAsk) (wire.Job, error) {
	l, err := c.leading()
	if err != nil {
		return wire.Job{}, err
	}
	if err := l.notOurs(); err != nil {
		return wire.Job{}, err
	}
	sc := script{Text: ask.Script, Env: ask.Env}
	if err := sound(&ask, sc.Text); err != nil {
		return wire.Job{}, err
	}
	ask.Script, ask.Env = "", nil
	var id int64
	err = l.do(ctx, func(t *tx) error {
		if id, err = l.accept(t, entrant{by: by, ask: ask}); err != nil {
			return err
		}
		j, _ := t.job(id)
		if a, ok := t.array(id); ok {
			j = a.Template
		}
		t.scripts[j.Script] = &sc
		text := fmt.Sprintf("job %d submitted name=%s nodes=%d", id, strconv.Quote(j.Name), j.Gang.Nodes)
		if n := len(ask.Array); n > 0 {
			text += fmt.Sprintf(" tasks=%d", n)
		}
		t.record(wire.HistoryEntry{Event: text, By: by})
		t.ref = strconv.FormatInt(id, 10)
		return nil
	})
	if err != nil {
		return wire.Job{}, err
	}
	if ref, again := api.Repeated(ctx); again {
		if id, err = strconv.ParseInt(ref, 10, 64); err != nil {
			return wire.Job{}, err
		}
	}
	return c.Job(ctx, id)
}

// An entrant is a job at the door.
type entrant struct {
	by     string
	ask    wire.JobAsk // sound, without script and environment
	script int64       // whose it shares; 0: its own
	batch  batchLine
}

// accept takes a job in, if the rules let it, and gives its id, of an array the array's. The caller keeps its script.
func (l *lead) accept(t *tx, e entrant) (int64, error) {
	after, err := queue.ParseDependencies(e.ask.After)
	if err != nil {
		return 0, &invalidError{err.Error(), "write it as afterok:12,afterany:13"}
	}
	for _, a := range after.List {
		_, isJob := t.job(a.Job)
		if _, isArray := t.array(a.Job); !isJob && !isArray && a.Kind != queue.Singleton {
			return 0, &invalidError{fmt.Sprintf("dependency %q: there is no job %d", e.ask.After, a.Job), "`assay job list --all` shows the jobs that are kept"}
		}
	}
	d := l.entrance(t)
	where, why := d.whole.Complete(e.by, rules.Place{Partition: e.ask.Partition, Account: e.ask.Account, QOS: e.ask.QOS})
	if why.Code != queue.NoReason {
		return 0, notTaken(why)
	}
	e.ask.Partition, e.ask.Account, e.ask.QOS = where.Partition, where.Account, where.QOS
	t.counters.Job++
	j := newJob(t.counters.Job, e, after, t.now, t.base.mostGPUs)
	if err := d.admit(t, j, max(len(e.ask.Array), 1)); err != nil {
		return 0, err
	}
	if len(e.ask.Array) == 0 {
		t.setJob(j)
		return j.ID, nil
	}
	j.Ask.Array = nil
	a := array{ID: j.ID, First: j.ID + 1, Tasks: e.ask.Array, Template: j}
	t.counters.Job += int64(len(a.Tasks))
	t.setArray(a)
	return a.ID, nil
}

func newJob(id int64, e entrant, after queue.Dependencies, now time.Time, mostGPUs int) job {
	ask := e.ask
	g := ask.Gang
	g.ID = strconv.FormatInt(id, 10)
	j := job{Ask: ask, Script: cmp.Or(e.script, id), Batch: e.batch.key, Line: e.batch.line, Job: wire.Job{ID: id, Name: ask.Name, User: e.by,
		Partition: ask.Partition, Account: ask.Account, QOS: ask.QOS, State: jobPending, Gang: g, Submitted: now, Throttle: ask.Throttle,
		Begin: ask.Begin, Deadline: ask.Deadline, After: ask.After, Reservation: ask.Reservation}}
	gpus := g.GPUs
	if g.Whole || gpus == 0 && g.Share.Kind == scheduler.NoShare {
		gpus = mostGPUs // limits and shares count what it keeps from others
	}
	named := rules.Place{Partition: ask.Partition}.Partitions()
	j.Queue = queue.Job{ID: id, Name: ask.Name, User: e.by, Account: ask.Account, Partition: named[0], QOS: ask.QOS, Nodes: g.Nodes, GPUsPerNode: gpus,
		Limit: int64(g.Limit / time.Second), Submit: now.Unix(), Nice: ask.Nice, HeldUser: ask.Hold, Requeue: ask.Requeue, After: after,
		Throttle: ask.Throttle, Reservation: ask.Reservation}
	if len(named) > 1 {
		j.Queue.Partitions = named
	}
	if !ask.Begin.IsZero() {
		j.Queue.Begin = ask.Begin.Unix()
	}
	if !ask.Deadline.IsZero() {
		j.Queue.Deadline = ask.Deadline.Unix()
	}
	return j
}

// partitionsMost is how many partitions a job may name: a plan looks at each of them.
const partitionsMost = 8

// sound fills in what was left out and refuses what cannot be.
func sound(ask *wire.JobAsk, script string) error {
	bad := func(hint, format string, args ...any) error { return &invalidError{fmt.Sprintf(format, args...), hint} }
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
	case strings.Count(ask.Partition, ",") >= partitionsMost:
		return bad(fmt.Sprintf("name %d at most", partitionsMost), "partitions %.60q", ask.Partition)
	case len(ask.Array) > sbatch.MaxTasks || !slices.IsSorted(ask.Array) || ask.Throttle < 0:
		return bad("write it as 0-99%8", "an array of %d tasks: at most %d, sorted", len(ask.Array), sbatch.MaxTasks)
	case ask.Nice < 0:
		return bad("leave it out", "nice %d: nobody may raise his own priority", ask.Nice)
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
	case ask.Gang.SameGrade:
		return bad("leave it out; a partition can hold nodes of one kind", "same grade: no node's performance class is known here yet")
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
		if a, ok := s.arrays[id]; ok {
			out = s.viewArray(a)
			return nil
		}
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
			if v.Priority = o.priority; o.planned > 0 {
				v.Planned = time.Unix(o.planned, 0).UTC()
			}
		}
	}
	return v
}

// ordersAtOnce is how many tasks of an array one transaction orders: each has three operations at most.
const ordersAtOnce = 30

// OrderJob implements api.Jobs. An order to an array goes to all its tasks that go on.
func (c *Coordinator) OrderJob(ctx context.Context, by, verb string, id int64, v wire.JobVerb) (wire.Job, error) {
	l, err := c.leading()
	if err != nil {
		return wire.Job{}, err
	}
	for last := int64(0); ; {
		more := false
		err = l.do(ctx, func(t *tx) error {
			more = false
			_, isArray := t.array(id)
			n := 0
			for _, one := range t.tasksOf(id) {
				if isArray && one <= last {
					continue
				}
				if n++; n > ordersAtOnce {
					more = true
					break
				}
				if err := l.orderJob(t, by, verb, one, v); err != nil && !isArray {
					return err
				}
				last = one
			}
			return nil
		})
		if err != nil {
			return wire.Job{}, err
		}
		if !more {
			return c.Job(ctx, id)
		}
	}
}

func (l *lead) orderJob(t *tx, by, verb string, id int64, v wire.JobVerb) error {
	j, ok := t.job(id)
	if !ok {
		return unknownJob(id)
	}
	if verb == "requeue" {
		return l.requeueJob(t, j, by, v.Reason)
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
		return &invalidError{fmt.Sprintf("%q is no order to a job", verb), "orders are cancel, hold, release and requeue"}
	}
	t.setJob(j)
	t.record(wire.HistoryEntry{Event: fmt.Sprintf("job %d %s", id, verb), By: by, Detail: detail(v.Reason)})
	return nil
}

// FindJob implements api.Jobs.
func (c *Coordinator) FindJob(_ context.Context, text string) (id int64, err error) {
	err = c.read(func(_ *lead, s *state, _ time.Time) error { id, err = s.findJob(text); return err })
	return id, err
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

// oldJobs lists jobs that have ended and need not be kept, oldest first, no more than one transaction takes. Tasks of an
// array are kept as long as any of it goes on.
func oldJobs(jobs map[int64]job) []int64 {
	if len(jobs) <= jobsKept {
		return nil
	}
	goes := map[int64]bool{}
	for _, j := range jobs {
		if j.Array != 0 && !j.over() {
			goes[j.Array] = true
		}
	}
	var ended []int64
	for id, j := range jobs {
		if j.over() && !goes[j.Array] {
			ended = append(ended, id)
		}
	}
	slices.Sort(ended)
	return ended[:min(max(len(ended)-jobsKept, 0), releasesAtOnce)]
}
