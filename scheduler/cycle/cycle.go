package cycle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/backfill"
	"github.com/assay-gpu/assay/scheduler/queue"
)

// A Cycle is the state between rounds: the frozen order, the planned starts, and what is kept for preemptors.
type Cycle struct {
	Queue *queue.Queue
	Fleet *scheduler.Fleet
	// Wishes adds to a job's gang what the queue does not know: closeness, certificate, partition nodes. nil: nothing.
	Wishes func(*queue.Job, *scheduler.Gang)
	// Had is the nodes that a job had in its last run, in rank order; nil: not known. It is asked of jobs that lost a node.
	Had     func(*queue.Job) []int32
	Options backfill.Options
	// NoPreemption leaves everybody where he is.
	NoPreemption bool

	place    map[int64]int // in the frozen order
	entries  []queue.Entry // of the last round
	schedule *backfill.Schedule
	kept     map[int64]kept
	windows  map[string]bool // names of the fleet's reservations that stand for the queue's
	leaving  map[int64]int64 // victims in their grace time, and when they are gone
	asked    map[int64]int64 // when preemption was last tried in vain for a job
	claims   map[int64]bool  // running gangs that lost a node, for which another is kept
}

// kept is what was freed for a preemptor.
type kept struct {
	nodes []scheduler.Take
	until int64 // when its last victim is gone
}

// A Start is a job that starts now, on those nodes.
type Start struct {
	ID        int64
	Partition string // of those it names, the one where it starts
	Plan      scheduler.Plan
}

// ID is a job's name in a snapshot.
func ID(id int64) string { return strconv.FormatInt(id, 10) }

// Replan orders the queue anew and plans from nothing.
func (c *Cycle) Replan(now int64) []Start {
	c.Reserve(now)
	entries := c.Queue.Order(now)
	c.place = make(map[int64]int, len(entries))
	for i, e := range entries {
		c.place[e.Job.ID] = i
	}
	return c.round(entries, now, nil)
}

// Event goes through the frozen order again: after a job came or ended, a node failed or came back, or a planned start has
// come. Jobs that came since the last plan stand last.
func (c *Cycle) Event(now int64) []Start {
	if c.schedule == nil {
		return c.Replan(now)
	}
	entries := c.Queue.Order(now)
	at := func(e queue.Entry) int {
		if i, ok := c.place[e.Job.ID]; ok && !e.Key.Expedited {
			return i
		}
		if e.Key.Expedited { // a gang that lost a node has first claim on the one that replaces it, plan or not
			return -1
		}
		return math.MaxInt
	}
	slices.SortStableFunc(entries, func(a, b queue.Entry) int { return cmp.Compare(at(a), at(b)) })
	return c.round(entries, now, c.schedule)
}

func (c *Cycle) round(entries []queue.Entry, now int64, before *backfill.Schedule) []Start {
	c.Fleet.Tick(time.Unix(now, 0))
	entries = c.Queue.Spread(entries, now)
	c.entries = entries
	c.forget(now)
	c.unclaim()
	snap := c.snapshot()
	order := make([]backfill.Job, len(entries))
	for i, e := range entries {
		order[i] = backfill.Job{ID: ID(e.Job.ID), Gang: c.gang(snap, e.Job), NoReserve: c.Queue.NoReserve(e.Job), Urgent: e.Key.Expedited}
		if e.Key.Expedited && c.Had != nil {
			order[i].Had = c.Had(e.Job)
		}
		if k, ok := c.kept[e.Job.ID]; ok && !c.other(e.Job) {
			order[i].Kept, order[i].KeptUntil = k.nodes, k.until
		}
	}
	g := &gate{budget: c.Queue.Budget().Clone(), entries: entries, now: now}
	if before == nil {
		c.schedule = backfill.Plan(snap, order, g, c.Options)
	} else {
		c.schedule = backfill.Update(snap, order, g, c.Options, before)
	}
	started := make([]Start, len(c.schedule.Starts))
	starts := make(map[int64]bool, len(started))
	for i, s := range c.schedule.Starts {
		j := entries[s.Index].Job
		c.Queue.Choose(j.ID, j.Partition)
		started[i] = Start{j.ID, j.Partition, s.Plan}
		starts[j.ID] = true
		delete(c.kept, started[i].ID)
	}
	c.reasons(entries, starts, now)
	return started
}

// snapshot is the fleet with the ends of victims as they will be, not as their limits say.
func (c *Cycle) snapshot() *scheduler.Snapshot {
	snap := c.Fleet.Snapshot()
	var leaving []*scheduler.Running
	for id, by := range c.leaving {
		r := c.Fleet.Work(ID(id))
		if r == nil {
			delete(c.leaving, id)
			continue
		}
		gone := *r
		gone.End = time.Unix(by, 0)
		leaving = append(leaving, &gone)
	}
	if len(leaving) == 0 {
		return snap
	}
	slices.SortFunc(leaving, func(a, b *scheduler.Running) int { return cmp.Compare(a.ID, b.ID) })
	f := snap.Edit()
	for _, r := range leaving {
		f.End(r.ID)
		if err := f.Start(r); err != nil {
			return snap // it has just given those nodes back
		}
	}
	return f.Snapshot()
}

// Gang is what a job of the last round asks of the fleet, as it was asked then.
func (c *Cycle) Gang(id int64) scheduler.Gang { return c.gang(c.Fleet.View(), c.Queue.Job(id)) }

// gang is what a job asks of the fleet.
func (c *Cycle) gang(snap *scheduler.Snapshot, j *queue.Job) scheduler.Gang {
	g := scheduler.Gang{ID: ID(j.ID), Nodes: j.Nodes, GPUs: j.GPUsPerNode, Limit: time.Duration(c.Queue.Limit(j)) * time.Second, Reserved: j.Reservation}
	if bad := c.Queue.Avoid(j, snap.Now().Unix()); len(bad) > 0 {
		if set, err := snap.Named(bad...); err == nil {
			g.Except = []*scheduler.NodeSet{set}
		}
	}
	if c.Wishes != nil {
		c.Wishes(j, &g)
	}
	return g
}

// forget drops what is kept for jobs that no longer wait, and on nodes that can no longer be had.
func (c *Cycle) forget(now int64) {
	for id, k := range c.kept {
		j := c.Queue.Job(id)
		lost := slices.ContainsFunc(k.nodes, func(t scheduler.Take) bool {
			n := c.Fleet.View().Node(t.Node)
			return n.Bar != nil || n.Certificate.GPUs&t.GPUs != t.GPUs
		})
		if j == nil || j.State != queue.Pending || lost || now > k.until+keptAtMost {
			delete(c.kept, id)
		}
	}
}

// keptAtMost is the seconds for which freed nodes are kept after the last victim should have gone.
const keptAtMost = 600

// A gate holds the queue's limits against jobs in the order of a pass.
type gate struct {
	budget  *queue.Budget
	entries []queue.Entry
	now     int64
}

func (g *gate) Admit(i int) bool {
	j := g.entries[i].Job
	j.Why = g.budget.Admit(j, g.now)
	return j.Why.Code == queue.NoReason
}

func (g *gate) Charge(i int) { g.budget.Charge(g.entries[i].Job, g.now) }

// Planned is the planned start of a job, if it has one.
func (c *Cycle) Planned(id int64) (backfill.Planned, bool) {
	if c.schedule == nil {
		return backfill.Planned{}, false
	}
	p, ok := c.schedule.Planned[ID(id)]
	return p, ok
}

// Priorities are those of the jobs that the last round considered.
func (c *Cycle) Priorities() map[int64]uint32 {
	out := make(map[int64]uint32, len(c.entries))
	for _, e := range c.entries {
		out[e.Job.ID] = e.Key.Priority
	}
	return out
}

// Schedule is what the last round decided.
func (c *Cycle) Schedule() *backfill.Schedule { return c.schedule }

// Wake is when the next round is due though nothing happens: a planned start, a begin time or a back-off comes. ok is false
// when nothing is to come.
func (c *Cycle) Wake(now int64) (at int64, ok bool) {
	at, ok = c.Queue.NextChange(now)
	if c.schedule == nil {
		return at, ok
	}
	for _, p := range c.schedule.Planned {
		if !ok || p.Start < at {
			at, ok = p.Start, true
		}
	}
	return at, ok
}

// reasons notes on each job that was considered and does not start why it waits.
func (c *Cycle) reasons(entries []queue.Entry, starts map[int64]bool, now int64) {
	top, first := true, int64(0)
	c.anyway(entries)
	for _, e := range entries {
		if c.other(e.Job) || starts[e.Job.ID] || e.Job.Why.Code != queue.NoReason {
			continue
		}
		p, planned := c.schedule.Planned[ID(e.Job.ID)]
		switch {
		case planned:
			e.Job.Why = queue.Reason{Code: code(p.Cause.Kind), Text: p.Sentence(now)}
		case top:
			e.Job.Why = queue.Reason{Code: queue.Resources, Text: fmt.Sprintf("does not fit now; no start could be planned in the next %s", time.Duration(c.Options.Window)*time.Second)}
		default:
			e.Job.Why = queue.Reason{Code: queue.PriorityReason, Text: c.unplanned(first)}
		}
		if top {
			top, first = false, e.Job.ID
		}
	}
}

// unplanned is why a job has no planned start, when first is the first job that waits.
func (c *Cycle) unplanned(first int64) string {
	switch {
	case c.Options.Strict:
		return fmt.Sprintf("job %d goes before it, and without backfill nobody passes a job that waits", first)
	case c.Options.EASY:
		return fmt.Sprintf("does not fit now beside job %d, which goes first and alone has a planned start: backfill is EASY", first)
	}
	return fmt.Sprintf("others go before it, job %d first; too far back in the queue to have a planned start: %d jobs have one", first, len(c.schedule.Planned))
}

// code is the word that Slurm has for a cause.
func code(k backfill.Kind) queue.Code {
	switch k {
	case backfill.JobBefore:
		return queue.PriorityReason
	case backfill.Begins:
		return queue.ReservationReason
	case backfill.Reserved:
		return queue.ReqNodeNotAvail
	}
	return queue.Resources
}

// Explain is why a job waits, with the numbers of a placement tried for it alone.
func (c *Cycle) Explain(id int64) queue.Reason {
	j := c.Queue.Job(id)
	if j == nil || j.State != queue.Pending {
		return queue.Reason{}
	}
	why := j.Why
	if why.Code != queue.Resources {
		return why
	}
	snap := c.Fleet.Snapshot()
	if plan := scheduler.Place(snap, c.gang(snap, j)); plan.Refused != nil {
		why.Text = refusal(plan.Refused) + "; " + why.Text
	}
	return why
}
