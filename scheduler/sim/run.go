package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/backfill"
	"github.com/assay-gpu/assay/scheduler/cycle"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/quota"
)

// Options say on what fleet and by what rules a trace is run.
type Options struct {
	Nodes      []Node
	Leaf       int    // nodes under a leaf switch
	Policy     string // backfill, easy or fifo
	Faults     Faults
	Checkpoint int64   // seconds between checkpoints; 0: a job that is interrupted begins anew
	Restart    int64   // seconds that an interrupted job needs to come back
	Load       float64 // times are divided by it
	Estimate   float64 // where a trace has no limits, users ask so many times what they need
	Seed       uint64
	Plan       int64 // seconds between two plans
	CertLife   int64 // seconds that a certificate lasts
	// Progress is told now and then how many of the jobs are done.
	Progress func(done, all int)
	// Stop ends a run early with the error it returns; nil: nothing does.
	Stop func() error
	// Runs is how often a job is started before it is given up.
	Runs int
}

// DefaultOptions are conservative backfill, planned anew every five minutes, on nodes that do not fail.
func DefaultOptions(nodes []Node) Options {
	return Options{Nodes: nodes, Leaf: 16, Policy: "backfill", Checkpoint: 3600, Restart: 600, Load: 1, Estimate: 2, Seed: 1, Plan: 300, CertLife: 7 * 86400, Runs: 100}
}

// A work is one job of the trace in the simulation.
type work struct {
	*Job
	limit int64
	left  int64 // seconds of useful run that are left
	spent int64 // of the present run, what comes before useful work
	runs  int   // starts
	began int64 // of the first start; -1: not yet
	since int64 // of the present start
	ended int64 // -1: not yet
	state queue.State
	takes []scheduler.Take
	gang  float64 // GPUs in all; a share is part of one

	leaves, bound, reach int // used at the first start; the fewest on an empty fleet; the fewest among the nodes then free
}

// A run is a simulation at work.
type run struct {
	o       Options
	trace   *Trace
	c       *cluster
	cycle   *cycle.Cycle
	clock   clock
	chance  chance
	now     int64
	work    []work
	health  []health
	fault   []int // by node: number of the present fault or repair
	serial  uint64
	planAt  int64
	wakeAt  int64
	within  map[string]*scheduler.NodeSet // by models
	changed bool
	done    int
	tally   tally
}

// Run runs a trace to its end.
func Run(t *Trace, o Options) (*Result, error) {
	r, err := newRun(t, o)
	if err != nil {
		return nil, err
	}
	for r.clock.Len() > 0 && r.done < len(r.work) {
		e := r.clock.next()
		if o.Stop != nil {
			if err := o.Stop(); err != nil {
				return nil, err
			}
		}
		r.tally.advance(r, e.at)
		r.now = e.at
		if err := r.happen(e); err != nil {
			return nil, fmt.Errorf("second %d: %w", r.now, err)
		}
		if r.clock.Len() > 0 && r.clock.events[0].at == r.now {
			continue
		}
		if err := r.round(); err != nil {
			return nil, fmt.Errorf("second %d: %w", r.now, err)
		}
	}
	return r.result(), nil
}

func newRun(t *Trace, o Options) (*run, error) {
	if len(o.Nodes) == 0 || o.Leaf < 1 || o.Load <= 0 || o.Estimate < 1 || o.Plan < 1 || o.CertLife < 3600 {
		return nil, fmt.Errorf("a run needs nodes, leaves of one node or more, a load above 0, an estimate of 1 or more, a second between plans and an hour for a certificate: %+v", o.brief())
	}
	c, err := newCluster(o.Nodes, o.Leaf)
	if err != nil {
		return nil, err
	}
	r := &run{o: o, trace: t, c: c, chance: chance(o.Seed), planAt: never, wakeAt: never, within: map[string]*scheduler.NodeSet{}}
	cfg := queue.DefaultConfig(len(o.Nodes), 8, 8)
	if o.Policy == "fifo" {
		cfg.Weights = queue.Weights{} // in the order of their coming, and by nothing else
	}
	tree, err := accounts(t)
	if err != nil {
		return nil, err
	}
	q, err := queue.New(cfg, tree, start.Unix())
	if err != nil {
		return nil, err
	}
	r.cycle = &cycle.Cycle{Queue: q, Fleet: c.fleet, Wishes: r.wishes, Options: backfill.DefaultOptions()}
	r.cycle.Options.Renew = true
	switch o.Policy {
	case "backfill":
	case "easy":
		r.cycle.Options.EASY = true
	case "fifo":
		r.cycle.Options.Strict = true
	default:
		return nil, fmt.Errorf("no policy %q; there are backfill, easy and fifo", o.Policy)
	}
	r.fleet()
	r.jobs()
	r.tally.begin(r)
	return r, nil
}

func (o *Options) brief() string {
	return fmt.Sprintf("%d nodes, leaf %d, load %v, estimate %v, plan %d s, certificate %d s", len(o.Nodes), o.Leaf, o.Load, o.Estimate, o.Plan, o.CertLife)
}

// fleet brings the nodes into service.
func (r *run) fleet() {
	f := &r.o.Faults
	r.health, r.fault = make([]health, len(r.o.Nodes)), make([]int, len(r.o.Nodes))
	for i := range r.health {
		h := &r.health[i]
		h.lemon = r.chance.unit() < f.Lemons
		h.broken = r.chance.unit() < f.BadAtDay
		r.enter(int32(i))
		if f.SDCPerDay > 0 {
			r.clock.add(seconds(r.chance.exponential(1/f.SDCPerDay)), corrupts, int64(i), 0)
		}
	}
	if f.Gating {
		r.clock.add(r.o.CertLife/4, renews, 0, 0)
	}
}

// jobs brings the trace's jobs before the clock, and counts those that no fleet like this could run.
func (r *run) jobs() {
	r.work = make([]work, len(r.trace.Jobs))
	for i := range r.trace.Jobs {
		j := &r.trace.Jobs[i]
		w := &r.work[i]
		*w = work{Job: j, limit: j.Limit, left: j.Run, began: -1, ended: -1, gang: float64(j.Nodes*j.GPUs) + float64(j.Nodes*j.Share)/100}
		if w.limit <= 0 {
			w.limit = max(600, int64(float64(j.Run)*r.o.Estimate))
		}
		w.bound = (j.Nodes + r.o.Leaf - 1) / r.o.Leaf
		if !r.possible(j) {
			r.tally.impossible++
			r.done++
			w.ended = -2
			continue
		}
		r.clock.add(int64(float64(j.Submit)/r.o.Load), arrives, int64(i), 0)
	}
}

// possible reports whether the fleet has nodes enough for j, were all free.
func (r *run) possible(j *Job) bool {
	set := r.models(j)
	n := 0
	for i, s := range r.c.shapes {
		if s.GPUs >= max(1, j.GPUs) && (set == nil || set.Has(int32(i))) {
			if n++; n >= j.Nodes {
				return true
			}
		}
	}
	return false
}

// models is the nodes of the models that j names; nil for all.
func (r *run) models(j *Job) *scheduler.NodeSet {
	if len(j.Models) == 0 {
		return nil
	}
	key := strings.Join(j.Models, "|")
	set, ok := r.within[key]
	if !ok {
		var nodes []int32
		for _, m := range j.Models {
			if s := r.c.models[m]; s != nil {
				nodes = append(nodes, s.Nodes()...)
			}
		}
		slices.Sort(nodes)
		set = r.c.fleet.View().Set(slices.Compact(nodes)...)
		r.within[key] = set
	}
	return set
}

func (r *run) wishes(j *queue.Job, g *scheduler.Gang) {
	w := &r.work[j.ID-1]
	if w.Share > 0 {
		g.Share = scheduler.Share{Kind: scheduler.MPS, Amount: w.Share}
	}
	if set := r.models(w.Job); set != nil {
		g.Within = append(g.Within, set)
	}
}

// accounts is the tree of the trace's accounts and users, all with equal shares.
func accounts(t *Trace) (*quota.Tree, error) {
	var specs []quota.Spec
	seen := map[string]bool{}
	add := func(s quota.Spec, key string) {
		if !seen[key] {
			seen[key] = true
			s.Shares, s.Nominal, s.Borrow, s.Lend = 1, quota.None(), quota.None(), quota.None()
			specs = append(specs, s)
		}
	}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.Account == "" || j.Account == "root" {
			j.Account = "all"
		}
		add(quota.Spec{Name: j.Account}, j.Account)
		if j.User != "" {
			add(quota.Spec{Name: j.User, Parent: j.Account, User: true}, quota.User(j.Account, j.User))
		}
	}
	return quota.NewTree(specs)
}

// round lets the scheduler decide, where something has happened that can matter to somebody who waits.
func (r *run) round() error {
	q := r.cycle.Queue
	if !r.changed || len(q.Pending()) == 0 {
		return nil
	}
	r.changed = false
	unix := start.Unix() + r.now
	var starts []cycle.Start
	if r.now >= r.planAt || r.planAt == never {
		q.Tick(unix)
		starts = r.cycle.Replan(unix)
		r.planAt = r.now + r.o.Plan
		r.clock.add(r.planAt, plans, 0, 0)
	} else {
		starts = r.cycle.Event(unix)
	}
	if err := r.carry(starts); err != nil {
		return err
	}
	for {
		p, ok := r.cycle.Push(unix)
		if !ok {
			break
		}
		for _, v := range p.Victims {
			r.clock.add(v.By-start.Unix(), vacates, v.ID-1, r.work[v.ID-1].runs)
		}
	}
	if wake, ok := r.cycle.Wake(unix); ok {
		if wake -= start.Unix(); wake > r.now && (wake < r.wakeAt || r.wakeAt <= r.now) {
			r.wakeAt = wake
			r.clock.add(wake, wakes, 0, 0)
		}
	}
	return nil
}

// carry carries out starts.
func (r *run) carry(starts []cycle.Start) error {
	for _, s := range starts {
		w := &r.work[s.ID-1]
		if w.runs == 0 && w.Nodes > 1 {
			w.reach = r.reachable(w.Job)
		}
		if err := r.c.fleet.Start(&scheduler.Running{ID: cycle.ID(s.ID), Nodes: s.Plan.Nodes, Start: at(r.now), End: at(r.now + w.limit)}); err != nil {
			return err
		}
		if err := r.cycle.Queue.Start(s.ID, start.Unix()+r.now); err != nil {
			return err
		}
		w.takes, w.since, w.spent = s.Plan.Nodes, r.now, 0
		if w.runs > 0 {
			w.spent = r.o.Restart
		}
		w.runs++
		if w.began < 0 {
			w.began, w.leaves = r.now, s.Plan.Cost.Leaves
		}
		r.clock.add(r.now+min(w.limit, w.spent+w.left), ends, s.ID-1, w.runs)
		for _, t := range w.takes {
			if r.health[t.Node].broken { // most work dies within ten minutes (Alibaba Aegis: 73 % of tasks)
				r.clock.add(r.now+60+int64(540*r.chance.unit()), breaks, int64(t.Node), -w.runs)
			}
		}
		r.tally.started(r, w)
	}
	return nil
}
