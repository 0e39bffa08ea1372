package queue

import (
	"slices"

	"github.com/assay-gpu/assay/scheduler/quota"
)

// A Contest is the question whom a waiting job may push out, asked in thought: evictions are tried on a copy of what is
// counted.
//
// A job may push out jobs of a QOS that its own lists (or, with PreemptByTier, of a lower tier), and may take back from
// those who borrow what its account owns. In both cases it may not borrow itself, and stands before its victims in the one
// order.
type Contest struct {
	q      *Queue
	p      *Job
	key    Key
	fair   []float64
	budget *Budget
	now    int64
	out    []*Job
}

// Contest begins one for a waiting job.
func (q *Queue) Contest(id int64, now int64) *Contest {
	fair := q.fairShare()
	j := q.jobs[id]
	return &Contest{q: q, p: j, key: q.key(j, fair, now), fair: fair, budget: q.budget.Clone(), now: now}
}

// CanPush reports whether a job could push out anybody at all, whoever runs.
func (q *Queue) CanPush(j *Job) bool {
	return len(q.cfg.qos(j.QOS).Preempts) > 0 || q.cfg.PreemptByTier || q.quotas
}

// May reports whether the job may push v out, those that were evicted before being gone.
func (c *Contest) May(v *Job) bool {
	own, its := c.q.cfg.qos(c.p.QOS), c.q.cfg.qos(v.QOS)
	if v.State != Running || c.now-v.Start < its.ExemptTime {
		return false
	}
	k := c.q.key(v, c.fair, c.now)
	k.Borrows = c.budget.ledger.Borrowing(v.assoc, v.Amounts())
	listed := slices.Contains(own.Preempts, v.QOS)
	if c.q.cfg.PreemptByTier {
		listed = c.key.Rank > k.Rank
	}
	if !listed && (!k.Borrows || k.Rank > c.key.Rank) {
		return false
	}
	mine := c.key
	mine.Borrows = false // Allowed asks at the end that it be so
	return Before(mine, k)
}

// Evict takes v out in thought.
func (c *Contest) Evict(v *Job) {
	c.budget.Refund(v, v.Start)
	c.out = append(c.out, v)
}

// Allowed reports whether the job, those evicted being gone, would start within all limits and without borrowing.
func (c *Contest) Allowed() bool {
	return c.budget.Admit(c.p, c.now).Code == NoReason && !c.budget.ledger.Borrows(c.p.assoc, c.p.Amounts())
}

// A Potential is what each preemption lowers, so that preempting ends: first what is borrowed in all, then how many jobs
// wait of the highest rank, of the next, and so on.
//
// It falls because the preemptor does not borrow, so what is borrowed never rises, and falls when a borrower goes; and where
// it stays, every victim was listed and is of a lower rank: one job fewer waits of the preemptor's rank, and more of lower
// ones only.
type Potential struct {
	Borrowed int64
	Waiting  []int // by rank, the highest first
}

// Less reports whether a is lower than b.
func (a Potential) Less(b Potential) bool {
	if a.Borrowed != b.Borrowed {
		return a.Borrowed < b.Borrowed
	}
	return slices.Compare(a.Waiting, b.Waiting) < 0
}

// Potentials are the potential as things stand, and as they would with the evicted waiting again and the job started.
func (c *Contest) Potentials() (before, after Potential) {
	before.Waiting = c.q.waiting()
	after.Waiting = slices.Clone(before.Waiting)
	top := len(before.Waiting) - 1
	after.Waiting[top-c.q.rank(c.p)]--
	for _, v := range c.out {
		after.Waiting[top-c.q.rank(v)]++
	}
	before.Borrowed = c.q.budget.ledger.Borrowed()
	l := c.budget.ledger.Clone()
	l.Charge(c.p.assoc, c.p.Amounts())
	after.Borrowed = l.Borrowed()
	return before, after
}

// Potential is the potential as things stand.
func (q *Queue) Potential() Potential {
	return Potential{q.budget.ledger.Borrowed(), q.waiting()}
}

func (q *Queue) rank(j *Job) int {
	if q.cfg.PreemptByTier {
		return q.cfg.partition(j.Partition).Tier
	}
	return q.cfg.qos(j.QOS).rank
}

// waiting counts the waiting jobs by rank, the highest first.
func (q *Queue) waiting() []int {
	top := 0
	for i := range q.cfg.QOS {
		top = max(top, q.cfg.QOS[i].rank)
	}
	if q.cfg.PreemptByTier {
		top = 0
		for i := range q.cfg.Partitions {
			top = max(top, q.cfg.Partitions[i].Tier)
		}
	}
	n := make([]int, top+1)
	for _, id := range q.pending {
		n[top-q.rank(q.jobs[id])]++
	}
	return n
}

// Grace is the seconds that a job has left when it is pushed out.
func (q *Queue) Grace(j *Job) int64 { return q.cfg.qos(j.QOS).Grace }

// hasQuotas reports whether any account has a nominal quota: only then can anybody borrow.
func hasQuotas(t *quota.Tree) bool {
	for id := range t.Len() {
		if t.Spec(quota.ID(id)).Nominal != quota.None() {
			return true
		}
	}
	return false
}

// NoReserve reports whether a job's QOS has the flag: it gets no planned start.
func (q *Queue) NoReserve(j *Job) bool { return q.cfg.qos(j.QOS).NoReserve }
