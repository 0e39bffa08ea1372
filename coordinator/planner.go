package coordinator

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/commit"
	"github.com/assay-gpu/assay/scheduler/cycle"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/rules"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// A planner is the scheduler's own copy of fleet and queue. It belongs to one goroutine.
type planner struct {
	cycle   *cycle.Cycle
	tree    *topo.Tree
	leaf    map[string]string // by node, as the tree was made
	wishes  map[int64]scheduler.Gang
	first   map[int64]int64  // by job: when it was first looked at
	had     map[int64]string // by job: the nodes of its last launch, in rank order
	endings map[int64]queue.Ending
	members map[rules.Member]bool
	extra   []rules.Member                // of accounts, beside those that jobs have brought
	within  map[string]*scheduler.NodeSet // by partition; nil for all nodes
	saved   time.Time                     // when what was used was last written
	resumed bool                          // what was used before was found written
	shown   time.Time                     // when standings were last published
	now     int64
	planned time.Time
	anew    bool // the next round plans from nothing
	log     *slog.Logger
}

// newPlanner knows nothing before it first catches up.
func newPlanner(log *slog.Logger) *planner {
	return &planner{endings: map[int64]queue.Ending{}, first: map[int64]int64{}, log: log}
}

// rebuild makes fleet and queue anew from what is committed, and goes on with what was used.
func (p *planner) rebuild(s *state, topology string, now time.Time) error {
	members := append(s.members(), p.extra...)
	book := s.book.Whole()
	cfg, accounts, err := book.Build(s.fleetOf(), members)
	if err != nil {
		return err
	}
	tree := treeOf(topology, s.nodes)
	q, err := queue.New(cfg, accounts, now.Unix())
	if err != nil {
		return err
	}
	used := s.usage.Usage
	p.resumed = used.At > 0
	if p.cycle != nil {
		used = p.cycle.Queue.Usage(now.Unix())
	}
	q.Resume(used)
	q.SetReservations(book.Reserve(len(tree.Nodes), tree.Node))
	p.tree, p.leaf, p.wishes, p.anew = tree, leavesOf(s.nodes), map[int64]scheduler.Gang{}, true
	p.endings, p.had = map[int64]queue.Ending{}, map[int64]string{}
	p.members = map[rules.Member]bool{}
	for _, m := range members {
		p.members[m] = true
	}
	p.cycle = &cycle.Cycle{Queue: q, Fleet: scheduler.NewFleet(tree, now), Wishes: p.wish, Had: p.nodesHad, Options: book.Priority.Plan(), NoPreemption: true}
	p.within = map[string]*scheduler.NodeSet{}
	for name := range book.Partitions {
		if nodes := book.Within(name, tree.Node); nodes != nil {
			p.within[name] = p.cycle.Fleet.View().Set(nodes...)
		}
	}
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
	if j.Nodes != "" {
		p.had[j.ID] = j.Nodes
	}
	if q != nil && q.State.Done() && !j.over() { // somebody wants it started again
		p.cycle.Queue.Forget(j.ID)
		q = nil
	}
	switch {
	case j.over():
		delete(p.first, j.ID)
		delete(p.had, j.ID)
		if q == nil {
			return p.cycle.Queue.Recall(endedJob(j))
		}
		if q.State == queue.Pending {
			return p.cycle.Queue.Cancel(j.ID, p.now)
		}
		return nil
	case q == nil:
		p.wishes[j.ID] = j.Gang
		waits := j.Queue
		waits.Accrue = s.accrue(j)
		if err := p.cycle.Queue.Restore(waits); err != nil {
			return err
		}
		if j.State != jobPending {
			if err := p.resume(s, j); err != nil {
				return err
			}
		}
	case j.State == jobEnding && j.Ending == nil:
		if l, ok := s.launches[j.Launch]; ok && l.Outcome == commit.NodeFail && j.Queue.Requeue {
			p.cycle.Claim(j.ID, p.now)
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

// accrue is since when a waiting job's age counts: as it was written, else since it was submitted, if nothing has kept it
// from being looked at.
func (s *state) accrue(j job) int64 {
	if at, ok := s.usage.Accrue[j.ID]; ok {
		return at
	}
	if j.Queue.HeldUser || j.Queue.HeldAdmin || j.Queue.Begin > j.Queue.Submit || len(j.Queue.After.List) > 0 || j.State != jobPending {
		return 0
	}
	return j.Queue.Submit
}

// nodesHad is where a job ran last, by the tree's numbers; nil when it does not know all of them any more.
func (p *planner) nodesHad(j *queue.Job) []int32 {
	names, err := hostlist.Expand(p.had[j.ID])
	if err != nil {
		return nil
	}
	var out []int32
	for _, name := range names {
		i, ok := p.tree.Node(name)
		if !ok {
			return nil
		}
		out = append(out, i)
	}
	return out
}

// endStates are how a job can have ended, by their name.
var endStates = func() map[string]queue.State {
	m := map[string]queue.State{}
	for _, s := range []queue.State{queue.Completed, queue.Failed, queue.Cancelled, queue.Timeout, queue.NodeFail, queue.Preempted, queue.Deadline} {
		m[s.String()] = s
	}
	return m
}()

// endedJob is a job that has ended, as the queue knows it.
func endedJob(j job) queue.Job {
	q := j.Queue
	q.State, q.Exit, q.End = endStates[j.State], j.Exit, j.Ended.Unix()
	return q
}

// resume takes up a launch that another leader, or this planner before it was made anew, had begun.
func (p *planner) resume(s *state, j job) error {
	l, ok := s.launches[j.Launch]
	start := p.now
	switch {
	case ok:
		start = l.Reserved.Unix()
	case j.Ending != nil:
		start = min(p.now, j.Ending.At)
		if !j.Started.IsZero() {
			start = min(start, j.Started.Unix())
		}
	}
	if err := p.cycle.Queue.Start(j.ID, start); err != nil {
		return err
	}
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
	id, limit, except, reserved := g.ID, g.Limit, g.Except, g.Reserved
	*g = w
	g.ID, g.Limit, g.Except, g.Reserved = id, limit, except, reserved
	if set := p.within[j.Partition]; set != nil {
		g.Within = append(g.Within, set)
	}
	if p.first[j.ID] == 0 {
		p.first[j.ID] = p.now
	}
	g.Waited = time.Duration(p.now-p.first[j.ID]) * time.Second
}
