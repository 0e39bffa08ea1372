package queue

import (
	"fmt"

	"github.com/assay-gpu/assay/scheduler/quota"
)

// A RefusedError says that a job was not taken into the queue, and why.
type RefusedError struct {
	Job    int64
	Reason Reason
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("submit job %d: %s: %s", e.Job, e.Reason.Code, e.Reason.Text)
}

// refuseIn is why j cannot be submitted to its partition; no reason when it can. Limits on what runs make a job wait, limits
// on what is submitted refuse it; so does an account's time limit, and with DenyOnLimit every limit that no wait would lift.
func (q *Queue) refuseIn(j *Job) Reason {
	c := &q.cfg
	p, qos := c.partition(j.Partition), c.qos(j.QOS)
	switch {
	case j.Nodes < 1:
		return Reason{BadConstraints, fmt.Sprintf("asks %d nodes", j.Nodes)}
	case j.GPUsPerNode < 0 || j.CPUsPerNode < 0 || j.MemoryPerNode < 0 || j.Limit < 0:
		return Reason{BadConstraints, "asks less than nothing of something"}
	case q.jobs[j.ID] != nil:
		return Reason{BadConstraints, fmt.Sprintf("job %d is already in the queue", j.ID)}
	case p == nil:
		return Reason{BadConstraints, fmt.Sprintf("there is no partition %q", j.Partition)}
	case p.State == DrainState:
		return Reason{PartitionDown, fmt.Sprintf("partition %s takes no new jobs", p.Name)}
	case qos == nil:
		return Reason{InvalidQOS, fmt.Sprintf("there is no QOS %q", j.QOS)}
	}
	if r := p.takes(j); r.Code != NoReason {
		return r
	}
	id, ok := q.tree.Find(quota.User(j.Account, j.User))
	if !ok {
		if id, ok = q.tree.Find(j.Account); !ok || j.User != "" && !c.Open {
			return Reason{InvalidAccount, fmt.Sprintf("%q is no user of an account %q", j.User, j.Account)}
		}
	}
	j.assoc = id
	if j.Reservation != "" {
		r := q.reservation(j.Reservation)
		if r == nil || !r.Admits(j) {
			return Reason{ReservationReason, fmt.Sprintf("no reservation %q that %s may use", j.Reservation, j.User)}
		}
	}
	if who, m := q.budget.wall(j); m != quota.Unset && p.limit(j) > m {
		return Reason{AssocMaxWallDurationPerJob, fmt.Sprintf("asks %s; account %s allows %s", span(p.limit(j)), who, span(m))}
	}
	if r := q.submitLimit(j); r.Code != NoReason {
		return r
	}
	if qos.DenyOnLimit {
		return q.budget.oneJob(j, p)
	}
	return Reason{}
}

func (q *Queue) submitLimit(j *Job) Reason {
	b := q.budget
	perUserSet := false
	for _, x := range b.places(j) {
		l := &x.Limits
		if n := b.qos[scopeKey{qos: x.Name}].submitted; l.GrpSubmit != quota.Unset && n+1 > l.GrpSubmit {
			return Reason{QOSGrpSubmitJobsLimit, fmt.Sprintf("QOS %s may have %d jobs in the queue and has %d", x.Name, l.GrpSubmit, n)}
		}
		if n := b.qos[scopeKey{qos: x.Name, user: j.User}].submitted; !perUserSet && l.MaxSubmit != quota.Unset {
			if perUserSet = true; n+1 > l.MaxSubmit {
				return Reason{QOSMaxSubmitJobPerUserLimit, fmt.Sprintf("QOS %s lets a user have %d jobs in the queue; %s has %d", x.Name, l.MaxSubmit, j.User, n)}
			}
		}
		if n := b.qos[scopeKey{qos: x.Name, account: j.Account}].submitted; l.MaxSubmitPerAccount != quota.Unset && n+1 > l.MaxSubmitPerAccount {
			return Reason{MaxSubmitJobsPerAccount, fmt.Sprintf("QOS %s lets an account have %d jobs in the queue; %s has %d", x.Name, l.MaxSubmitPerAccount, j.Account, n)}
		}
	}
	for id, ok := j.assoc, true; ok; id, ok = q.tree.Parent(id) {
		l := b.limits[id]
		if l == nil {
			continue
		}
		if n := b.assoc[id].submitted; l.GrpSubmit != quota.Unset && n+1 > l.GrpSubmit {
			return Reason{AssocGrpSubmitJobsLimit, fmt.Sprintf("account %s may have %d jobs in the queue and has %d", q.tree.Name(id), l.GrpSubmit, n)}
		}
		if n := b.assoc[j.assoc].submitted; !perUserSet && l.MaxSubmit != quota.Unset {
			if perUserSet = true; n+1 > l.MaxSubmit {
				return Reason{AssocMaxSubmitJobLimit, fmt.Sprintf("account %s lets %s have %d jobs in the queue; it has %d", q.tree.Name(id), j.User, l.MaxSubmit, n)}
			}
		}
	}
	return Reason{}
}
