package preempt

import (
	"cmp"
	"slices"
	"sort"

	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/quota"
)

// A Candidate is a running job that may have to go.
type Candidate struct {
	ID  string // in the snapshot
	Job *queue.Job
	Key queue.Key
}

// A Decision is whom to push out, and where the job then starts.
type Decision struct {
	Victims []Candidate
	Plan    scheduler.Plan // on the fleet without them
	Lost    int64          // GPU seconds that the victims have run
	// The potential before and after: what makes preempting end.
	Before, After queue.Potential
}

// A Claimant is the job that waits. Contest begins a contest for it.
type Claimant struct {
	Gang    scheduler.Gang
	Contest func() *queue.Contest
}

// Decide finds the victims for a claimant; ok is false when pushing out all whom it may would not give it a place. It may
// be asked only about a job that cannot start as things are.
func Decide(snap *scheduler.Snapshot, c Claimant, running []Candidate) (d Decision, ok bool) {
	order := slices.Clone(running)
	// The last in the order goes first; of equals the one that has run for the shortest time.
	slices.SortFunc(order, func(a, b Candidate) int {
		switch {
		case queue.Before(b.Key, a.Key):
			return -1
		case queue.Before(a.Key, b.Key):
			return 1
		}
		return cmp.Compare(b.Job.Start, a.Job.Start)
	})
	t := trial{snap, c}
	all, ok := t.without(order)
	if !ok {
		return Decision{}, false
	}
	// Fewest by the order: the shortest beginning of the list that is enough. More room never hurts, so it can be halved.
	n := 1 + sort.Search(len(order)-1, func(n int) bool { _, ok := t.without(order[:n+1]); return ok })
	few, _ := t.without(order[:n])
	few = t.prune(few)
	// Closest: the best place with all of them gone, and only those that stand there.
	near, ok := t.without(t.standing(all))
	if ok {
		near = t.prune(near)
	}
	if ok && (near.Lost < few.Lost || near.Lost == few.Lost && near.Plan.Cost.Less(few.Plan.Cost)) {
		few = near
	}
	return few, true
}

// A trial asks what would be if some were gone.
type trial struct {
	snap *scheduler.Snapshot
	c    Claimant
}

// without evicts those of victims that may be, in their order, and places the claimant on what is then free.
func (t trial) without(victims []Candidate) (Decision, bool) {
	contest, fleet := t.c.Contest(), t.snap.Edit()
	var d Decision
	for _, v := range victims {
		if !contest.May(v.Job) {
			continue
		}
		contest.Evict(v.Job)
		fleet.End(v.ID)
		d.Victims = append(d.Victims, v)
		d.Lost += v.Job.Amounts()[quota.GPUs] * (t.snap.Now().Unix() - v.Job.Start)
	}
	if len(d.Victims) == 0 || !contest.Allowed() {
		return d, false
	}
	plan, ok := scheduler.Find(fleet.View(), t.c.Gang)
	d.Plan = plan
	d.Before, d.After = contest.Potentials()
	return d, ok
}

// standing are the victims whose GPUs the place takes.
func (t trial) standing(d Decision) []Candidate {
	taken := map[int32]bool{}
	for _, n := range d.Plan.Nodes {
		taken[n.Node] = true
	}
	mine := map[string]bool{}
	for r := range t.snap.Running() {
		for _, n := range r.Nodes {
			mine[r.ID] = mine[r.ID] || taken[n.Node]
		}
	}
	var out []Candidate
	for _, v := range d.Victims {
		if mine[v.ID] {
			out = append(out, v)
		}
	}
	return out
}

// mostPruned is how many victims are asked about one by one.
const mostPruned = 64

// prune lets off whom the place can do without: first all that do not stand on it, then one by one those that are first in
// the order.
func (t trial) prune(d Decision) Decision {
	if fewer, ok := t.without(t.standing(d)); ok && len(fewer.Victims) < len(d.Victims) {
		d = fewer
	}
	for i, tried := len(d.Victims)-1, 0; i >= 0 && tried < mostPruned && len(d.Victims) > 1; i, tried = i-1, tried+1 {
		rest := slices.Delete(slices.Clone(d.Victims), i, i+1)
		if fewer, ok := t.without(rest); ok && len(fewer.Victims) == len(rest) {
			d = fewer
		}
	}
	return d
}
