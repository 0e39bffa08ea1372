package cycle

import (
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/preempt"
	"github.com/assay-gpu/assay/scheduler/queue"
)

// A Push is one job pushing out others.
type Push struct {
	ID      int64 // who comes
	Victims []Victim
	Plan    scheduler.Plan // where it starts
	// The potential before and after; it falls.
	Before, After queue.Potential
}

// A Victim is who goes, and when at the latest.
type Victim struct {
	ID int64
	By int64
}

// Limits of one round: how many waiting jobs it looks at, and after how long a job that it could not help is looked at
// again.
const (
	pushesTried = 16
	pushAgain   = 60 // seconds
)

// Push finds the first waiting job that can push others out, and says whom. It is asked after a round whose starts have been
// carried out, again and again until it answers false; the caller signals the victims and ends them at their time, and the
// job starts in a later round. What they free is kept for it, and they do not come back before it has started.
func (c *Cycle) Push(now int64) (Push, bool) {
	if c.NoPreemption || c.schedule == nil {
		return Push{}, false
	}
	if c.asked == nil {
		c.asked = map[int64]int64{}
	}
	snap := c.Fleet.Snapshot()
	var running []preempt.Candidate
	tried := 0
	for _, e := range c.entries {
		id := e.Job.ID
		if _, has := c.kept[id]; has || tried >= pushesTried || e.Job.State != queue.Pending || c.other(e.Job) {
			continue
		}
		if at, ok := c.asked[id]; ok && now < at+pushAgain {
			continue
		}
		if !c.Queue.CanPush(e.Job) {
			continue
		}
		contest := func() *queue.Contest { return c.Queue.Contest(id, now) }
		if running == nil {
			running = c.candidates(now)
		}
		tried++
		g := c.gang(snap, e.Job)
		g.Except = append(g.Except[:len(g.Except):len(g.Except)], c.promised(snap, e, now))
		d, ok := preempt.Decide(snap, preempt.Claimant{Gang: g, Contest: contest}, running)
		if !ok {
			c.asked[id] = now
			continue
		}
		return c.push(e.Job, d, now), true
	}
	return Push{}, false
}

// push keeps what the victims free.
func (c *Cycle) push(j *queue.Job, d preempt.Decision, now int64) Push {
	p := Push{ID: j.ID, Plan: d.Plan, Before: d.Before, After: d.After}
	until := now
	if c.kept == nil {
		c.kept, c.leaving = map[int64]kept{}, map[int64]int64{}
	}
	for _, v := range d.Victims {
		by := now + c.Queue.Grace(v.Job)
		until = max(until, by)
		v.Job.Behind = j.ID
		c.leaving[v.Job.ID] = by
		p.Victims = append(p.Victims, Victim{v.Job.ID, by})
	}
	c.kept[j.ID] = kept{d.Plan.Nodes, until}
	return p
}

// candidates are the running jobs that nobody has pushed out yet.
func (c *Cycle) candidates(now int64) []preempt.Candidate {
	ids := c.Queue.Running()
	keys := c.Queue.Keys(ids, now)
	all := make([]preempt.Candidate, 0, len(ids))
	for i, id := range ids {
		if j := c.Queue.Job(id); j.Behind == 0 {
			all = append(all, preempt.Candidate{ID: ID(id), Job: j, Key: keys[i]})
		}
	}
	return all
}

// promised is the nodes that jobs before e, or preemptors, are to have: pushing somebody out gives no claim on those.
func (c *Cycle) promised(snap *scheduler.Snapshot, e queue.Entry, now int64) *scheduler.NodeSet {
	var nodes []int32
	for _, k := range c.kept {
		for _, t := range k.nodes {
			nodes = append(nodes, t.Node)
		}
	}
	mine, ranked := c.place[e.Job.ID]
	end := now + c.Queue.Limit(e.Job)
	for id, i := range c.place {
		if ranked && i >= mine {
			continue
		}
		if p, ok := c.schedule.Planned[ID(id)]; ok && p.Start < end {
			for _, t := range p.Nodes {
				nodes = append(nodes, t.Node)
			}
		}
	}
	return snap.Set(nodes...)
}
