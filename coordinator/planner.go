package coordinator

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/backfill"
	"github.com/assay-gpu/assay/scheduler/commit"
	"github.com/assay-gpu/assay/scheduler/cycle"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/quota"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// A planner is the scheduler's own copy of fleet and queue. It belongs to one goroutine.
type planner struct {
	cycle   *cycle.Cycle
	tree    *topo.Tree
	leaf    map[string]string // by node, as the tree was made
	wishes  map[int64]scheduler.Gang
	first   map[int64]int64 // by job: when it was first looked at
	endings map[int64]queue.Ending
	now     int64
	planned time.Time
	anew    bool // the next round plans from nothing
	log     *slog.Logger
}

// everybody is the account that jobs are charged to until accounts are kept.
const everybody = "all"

// cpusPerNode only weighs a job's size where Slurm's factor counts CPUs; GPUs are what is placed.
const cpusPerNode = 96

// newPlanner knows nothing before it first catches up.
func newPlanner(log *slog.Logger) *planner {
	return &planner{endings: map[int64]queue.Ending{}, first: map[int64]int64{}, log: log}
}

// rebuild makes fleet and queue anew from what is committed.
func (p *planner) rebuild(s *state, topology string, now time.Time) error {
	tree := treeOf(topology, s.nodes)
	accounts, err := quota.NewTree([]quota.Spec{{Name: everybody, Shares: 1, Nominal: quota.None(), Borrow: quota.None(), Lend: quota.None()}})
	if err != nil {
		return err
	}
	q, err := queue.New(queue.DefaultConfig(max(len(s.nodes), 1), 8, cpusPerNode), accounts, now.Unix())
	if err != nil {
		return err
	}
	p.tree, p.leaf, p.wishes, p.anew = tree, leavesOf(s.nodes), map[int64]scheduler.Gang{}, true
	p.endings = map[int64]queue.Ending{}
	p.cycle = &cycle.Cycle{Queue: q, Fleet: scheduler.NewFleet(tree, now), Wishes: p.wish, Options: backfill.DefaultOptions(), NoPreemption: true}
	for _, name := range sortedKeys(s.nodes) {
		p.feed(name, s.nodes[name], now)
	}
	for _, id := range sortedKeys(s.jobs) {
		p.takeIn(s, s.jobs[id])
	}
	return nil
}

// feed tells the planner's fleet of a node, unless the site's topology keeps it out. One that makes no sense is told and
// left as it was: the others must not wait for it.
func (p *planner) feed(name string, n lifecycle.Node, now time.Time) {
	i, ok := p.tree.Node(name)
	if !ok {
		return
	}
	if err := feed(p.cycle.Fleet, i, n, now); err != nil {
		p.log.Error("node not planned with", "node", name, "err", err)
	}
}

// takeIn is take, for one job among others that must not suffer for it.
func (p *planner) takeIn(s *state, j job) {
	if err := p.take(s, j); err != nil {
		p.log.Error("job not planned", "job", j.ID, "err", err)
	}
}

// take brings the planner's view of one job up to what is committed.
func (p *planner) take(s *state, j job) error {
	q := p.cycle.Queue.Job(j.ID)
	switch {
	case j.over():
		delete(p.first, j.ID)
		if q != nil && q.State == queue.Pending {
			return p.cycle.Queue.Cancel(j.ID, p.now)
		}
		return nil
	case q == nil:
		p.wishes[j.ID] = j.Gang
		submitted := j.Queue.Submit
		if err := p.cycle.Queue.Submit(j.Queue, p.now); err != nil {
			return err
		}
		q = p.cycle.Queue.Job(j.ID)
		q.Submit = cmp.Or(submitted, p.now)
		if j.State != jobPending {
			if err := p.resume(s, j); err != nil {
				return err
			}
		}
	case j.State == jobPending && q.State == queue.Pending:
		q.HeldUser, q.HeldAdmin = j.Queue.HeldUser, j.Queue.HeldAdmin
		q.Attempts, q.NotBefore = j.Queue.Attempts, j.Queue.NotBefore
	}
	if j.Ending != nil {
		p.endings[j.ID] = *j.Ending
	}
	return nil
}

// resume takes up a launch that another leader, or this planner before it was made anew, had begun.
func (p *planner) resume(s *state, j job) error {
	now := cmp.Or(j.Queue.Start, p.now)
	if err := p.cycle.Queue.Start(j.ID, now); err != nil {
		return err
	}
	l, ok := s.launches[j.Launch]
	if !ok {
		return nil // over: its nodes are free
	}
	return p.cycle.Fleet.Start(&scheduler.Running{ID: cycle.ID(j.ID), Nodes: takes(p.tree, l.Launch), Start: l.Reserved, End: endOf(l.Reserved, p.limit(j.ID))})
}

// takes is what a launch has, in the tree's numbering of nodes.
func takes(tree *topo.Tree, l commit.Launch) []scheduler.Take {
	var out []scheduler.Take
	for _, seat := range l.Seats {
		if i, ok := tree.Node(seat.Node); ok {
			out = append(out, scheduler.Take{Node: i, GPUs: seat.GPUs, Part: seat.Part})
		}
	}
	slices.SortFunc(out, func(a, b scheduler.Take) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

func (p *planner) limit(id int64) time.Duration {
	return time.Duration(p.cycle.Queue.Limit(p.cycle.Queue.Job(id))) * time.Second
}

func endOf(start time.Time, limit time.Duration) time.Time {
	if limit <= 0 {
		return time.Time{}
	}
	return start.Add(limit)
}

// started notes that a plan was committed.
func (p *planner) started(s cycle.Start, g scheduler.Gang) error {
	now := time.Unix(p.now, 0)
	return errors.Join(p.cycle.Queue.Start(s.ID, p.now),
		p.cycle.Fleet.Start(&scheduler.Running{ID: cycle.ID(s.ID), Nodes: s.Plan.Nodes, Start: now, End: endOf(now, g.Limit)}))
}

// wish adds to a job's gang what the queue does not know.
func (p *planner) wish(j *queue.Job, g *scheduler.Gang) {
	w := p.wishes[j.ID]
	id, limit, except := g.ID, g.Limit, g.Except
	*g = w
	g.ID, g.Limit, g.Except = id, limit, except
	if p.first[j.ID] == 0 {
		p.first[j.ID] = p.now
	}
	g.Waited = time.Duration(p.now-p.first[j.ID]) * time.Second
}
