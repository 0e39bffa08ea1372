package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/commit"
	"github.com/assay-gpu/assay/scheduler/cycle"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// Times of the planner.
const (
	replanEvery = 30 * time.Second // the order is frozen between re-plans
	idleEvery   = 5 * time.Second  // certificates age though nothing happens
)

// changes are what the apply loop has committed and the planner has not yet looked at.
type changes struct {
	mu    sync.Mutex
	nodes map[string]struct{}
	jobs  map[int64]struct{}
	rules bool          // have changed
	kick  chan struct{} // has room for one
}

func newChanges() changes {
	return changes{nodes: map[string]struct{}{}, jobs: map[int64]struct{}{}, kick: make(chan struct{}, 1)}
}

// note remembers what a transaction has changed.
func (c *changes) note(t *tx) {
	if len(t.nodes)+len(t.jobs)+len(t.tasks) == 0 && !t.ruled {
		return
	}
	c.mu.Lock()
	c.rules = c.rules || t.ruled
	for name := range t.nodes {
		c.nodes[name] = struct{}{}
	}
	for id := range t.jobs {
		c.jobs[id] = struct{}{}
	}
	for id := range t.tasks {
		c.jobs[id] = struct{}{}
	}
	c.mu.Unlock()
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

func (c *changes) take() (nodes map[string]struct{}, jobs map[int64]struct{}, rules bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes, jobs, rules = c.nodes, c.jobs, c.rules
	c.nodes, c.jobs, c.rules = map[string]struct{}{}, map[int64]struct{}{}, false
	return nodes, jobs, rules
}

// outlooks are why jobs wait and when they are expected to start: what the planner thinks, kept for people to read.
type outlooks struct {
	mu        sync.RWMutex
	by        map[int64]outlook
	standings map[string]queue.Standing
	snap      *scheduler.Snapshot // the fleet as the planner last saw it
}

type outlook struct {
	why      queue.Reason
	planned  int64
	priority uint32
}

// schedule plans and has the apply loop reserve what starts, until ctx ends. It thinks on its own copy of fleet and queue,
// so that no revocation waits for it.
func (l *lead) schedule(ctx context.Context) error {
	p := newPlanner(l.log)
	for {
		l.round(ctx, p)
		l.saveUsage(ctx, p)
		wait := idleEvery
		if p.cycle != nil {
			if at, ok := p.cycle.Wake(p.now); ok {
				wait = min(wait, max(time.Duration(at-p.now)*time.Second, 100*time.Millisecond))
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.changes.kick:
		case <-time.After(wait):
		}
	}
}

// round takes in what has changed, settles what has ended, and starts what can start.
func (l *lead) round(ctx context.Context, p *planner) {
	for range 8 { // what ended may free the nodes for what starts; what was refused is planned anew
		if err := l.catchUp(p); err != nil {
			l.log.Error("planner", "err", err)
			p.tree = nil // what it had taken in is lost: made anew from what is committed
			return
		}
		l.settleJobs(ctx, p)
		if len(p.cycle.Queue.Pending()) == 0 { // most nodes change while nothing waits for them
			l.outlook(p)
			return
		}
		var starts []cycle.Start
		if wall := time.Now(); wall.Sub(p.planned) > replanEvery || p.anew {
			p.planned, p.anew = wall, false
			p.cycle.Queue.Tick(p.now)
			starts = p.cycle.Replan(p.now)
		} else {
			starts = p.cycle.Event(p.now)
		}
		l.settleGone(ctx, p)
		refused := l.start(ctx, p, starts)
		l.outlook(p)
		if len(starts) == 0 || ctx.Err() != nil {
			return
		}
		if refused == len(starts) && !pause(ctx, 50*time.Millisecond) {
			return
		}
	}
}

// start reserves the nodes of what starts now, all at once: the apply loop puts them into as few transactions as it can.
func (l *lead) start(ctx context.Context, p *planner, starts []cycle.Start) (refused int) {
	if len(starts) == 0 {
		return 0
	}
	f := p.cycle.Fleet.Snapshot().Edit() // the apply loop's own until all are answered
	gangs := make([]scheduler.Gang, len(starts))
	for i, s := range starts {
		gangs[i] = p.cycle.Gang(s.ID)
	}
	errs := make([]error, len(starts))
	var g errgroup.Group
	g.SetLimit(batchMost)
	for i, s := range starts {
		g.Go(func() error {
			errs[i] = l.do(ctx, func(t *tx) error { return l.reserve(t, f, gangs[i], s) })
			return nil
		})
	}
	_ = g.Wait() // no error of its own: they are in errs
	for i, s := range starts {
		if errs[i] != nil {
			refused++
			var misfit *scheduler.MisfitError
			if !errors.As(errs[i], &misfit) && ctx.Err() == nil {
				l.log.Warn("plan not taken", "job", s.ID, "err", errs[i])
			}
			continue
		}
		if err := p.started(s, gangs[i]); err != nil {
			l.log.Error("planner", "job", s.ID, "err", err)
			p.tree = nil // made anew from what is committed
		}
	}
	return refused
}

// reserve makes a launch of a plan, in the apply loop. The plan is checked with the same Fits that Place used, against its
// nodes as they are now: a certificate revoked meanwhile is no place to start. f is the fleet that the plan was made for, and
// serves all plans of a round: it learns what the nodes of each are now, and starts nothing.
func (l *lead) reserve(t *tx, f *scheduler.Fleet, g scheduler.Gang, s cycle.Start) error {
	j, ok := t.job(s.ID)
	if !ok || j.State != jobPending || j.Queue.HeldUser || j.Queue.HeldAdmin {
		return &scheduler.MisfitError{Gang: g.ID, Text: "the job does not wait any more"}
	}
	f.Tick(t.now)
	seats := make([]commit.Seat, len(s.Plan.Nodes))
	for i, take := range s.Plan.Nodes {
		name := f.View().Tree().Nodes[take.Node]
		n, ok := t.node(name)
		if !ok {
			return &scheduler.MisfitError{Gang: g.ID, Node: name, Text: "not enrolled"}
		}
		if err := feed(f, take.Node, n, t.now); err != nil {
			return err
		}
		seats[i] = commit.Seat{Node: name, GPUs: take.GPUs, Part: take.Part, Serial: f.View().Node(take.Node).Certificate.Serial}
	}
	if err := scheduler.Fits(f.View(), g, s.Plan); err != nil {
		return err
	}
	j.Launches++
	x := indexed(commit.Begin(fmt.Sprintf("%d.%d", s.ID, j.Launches), s.ID, g, seats, t.now))
	j.State, j.Launch, j.Nodes, j.Reason, j.Code = jobStarting, x.ID, x.list, "", ""
	j.Partition, j.Queue.Partition = s.Partition, s.Partition
	t.setLaunch(x)
	t.setJob(j)
	t.record(wire.HistoryEntry{Event: "gang " + x.ID + " reserved", To: string(commit.Reserved), By: "assay", Detail: []string{"on " + x.list}})
	return nil
}

// outlook publishes what the planner thinks.
func (l *lead) outlook(p *planner) {
	by := map[int64]outlook{}
	priorities := p.cycle.Priorities()
	for _, id := range p.cycle.Queue.Pending() {
		o := outlook{why: p.cycle.Queue.Job(id).Why, priority: priorities[id]}
		if pl, ok := p.cycle.Planned(id); ok {
			o.planned = pl.Start
		}
		by[id] = o
	}
	var standings map[string]queue.Standing
	if wall := time.Now(); wall.Sub(p.shown) > time.Second {
		p.shown = wall
		standings = p.cycle.Queue.Standings()
	}
	l.outlooks.mu.Lock()
	defer l.outlooks.mu.Unlock()
	l.outlooks.by, l.outlooks.snap = by, p.cycle.Fleet.Snapshot()
	if standings != nil {
		l.outlooks.standings = standings
	}
}

// catchUp brings the planner's fleet and queue up to what is committed.
func (l *lead) catchUp(p *planner) error {
	nodes, jobs, ruled := l.changes.take()
	l.mu.RLock()
	defer l.mu.RUnlock()
	now := leaderNow(l.st)
	p.now = now.Unix()
	if p.tree == nil || ruled || !p.covers(l.st.nodes, nodes) || !p.knows(l.st.jobs, jobs) {
		return p.rebuild(l.st, l.cfg.Topology, now)
	}
	p.cycle.Fleet.Tick(now)
	for name := range nodes {
		p.feed(name, l.st.nodes[name], now)
	}
	for id := range jobs {
		if j, ok := l.st.jobs[id]; ok {
			p.takeIn(l.st, j)
		} else {
			p.cycle.Queue.Forget(id)
		}
	}
	return nil
}

// knows reports whether the users of all those jobs stand in the planner's tree of accounts.
func (p *planner) knows(all map[int64]job, changed map[int64]struct{}) bool {
	for id := range changed {
		if j, ok := all[id]; ok && !p.members[rules.Member{Account: j.Account, User: j.User}] {
			return false
		}
	}
	return true
}

// covers reports whether the planner's tree has all those nodes, under the leaves they are under now.
func (p *planner) covers(all map[string]lifecycle.Node, changed map[string]struct{}) bool {
	for name := range changed {
		leaf, known := p.leaf[name]
		if !known || leaf != all[name].Leaf {
			return false
		}
	}
	return true
}

// leavesOf is under which leaf each node stood when the tree was made.
func leavesOf(nodes map[string]lifecycle.Node) map[string]string {
	out := make(map[string]string, len(nodes))
	for name, n := range nodes {
		out[name] = n.Leaf
	}
	return out
}
