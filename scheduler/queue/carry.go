package queue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/scheduler/quota"
)

// What outlives the process that keeps a queue: jobs that were accepted, jobs that ended and that others may depend on, and
// what has been used.

// Restore takes up a waiting job that was accepted before. No limit is held against it again: what forbids it to start makes
// it wait. It is an error only when its partition, QOS or account is gone.
func (q *Queue) Restore(j Job) error {
	if err := q.place(&j); err != nil {
		return err
	}
	j.State = Pending
	q.useUntil(&j)
	q.add(&j)
	if j.Accrue > 0 {
		q.budget.change(&j, func(s *scope) { s.accruing++ })
	}
	return nil
}

// Recall takes in a job that has ended, so that others may depend on it, and what it used since usage was last carried over.
func (q *Queue) Recall(j Job) error {
	if !j.State.Done() {
		return fmt.Errorf("recall job %d: it has not ended", j.ID)
	}
	if err := q.place(&j); err == nil {
		q.useUntil(&j)
	}
	q.jobs[j.ID] = &j
	q.list(&j)
	return nil
}

// Forget drops a job that has ended. Who depends on it is told that it is not known.
func (q *Queue) Forget(id int64) {
	j := q.jobs[id]
	if j == nil || !j.State.Done() {
		return
	}
	delete(q.jobs, id)
	drop := func(ids []int64) []int64 {
		return slices.DeleteFunc(ids, func(other int64) bool { return other == id })
	}
	if j.Array != 0 {
		if q.arrays[j.Array] = drop(q.arrays[j.Array]); len(q.arrays[j.Array]) == 0 {
			delete(q.arrays, j.Array)
			delete(q.tasksRunning, j.Array)
		}
	}
	if key := nameKey(j); j.Name != "" {
		if q.byName[key] = drop(q.byName[key]); len(q.byName[key]) == 0 {
			delete(q.byName, key)
		}
	}
}

// Gone are the jobs that the queue itself has ended since it was last asked: they missed their deadline.
func (q *Queue) Gone() []int64 {
	gone := q.gone
	q.gone = nil
	return gone
}

// place finds whom j is charged to.
func (q *Queue) place(j *Job) error {
	if q.jobs[j.ID] != nil {
		return fmt.Errorf("job %d: it is in the queue already", j.ID)
	}
	if q.cfg.partition(j.Partition) == nil || q.cfg.qos(j.QOS) == nil {
		return fmt.Errorf("job %d: partition %s or QOS %s is gone", j.ID, j.Partition, j.QOS)
	}
	id, ok := q.tree.Find(quota.User(j.Account, j.User))
	if !ok {
		if id, ok = q.tree.Find(j.Account); !ok {
			return fmt.Errorf("job %d: account %s is gone", j.ID, j.Account)
		}
	}
	j.assoc = id
	return nil
}

// useUntil puts what the last run of j used after usage was last carried over into the history.
func (q *Queue) useUntil(j *Job) {
	if j.Start > 0 && j.End > j.Start {
		q.use(j, j.End)
	}
}

// A Usage is what has been used until a time. It fades; Resume lets the time since pass over it.
type Usage struct {
	At       int64                               `json:"at"`
	Billed   map[string]float64                  `json:"billed,omitempty"`   // by account, and account/user: billing units times seconds
	Accounts map[string][quota.Resources]float64 `json:"accounts,omitempty"` // amounts times seconds, by the same
	QOS      map[string][quota.Resources]float64 `json:"qos,omitempty"`      // by QOS/user/account, of which the latter two may be empty
}

// Usage is what has been used until now.
func (q *Queue) Usage(now int64) Usage {
	q.Tick(now)
	u := Usage{At: q.ticked, Billed: map[string]float64{}, Accounts: map[string][quota.Resources]float64{}, QOS: map[string][quota.Resources]float64{}}
	for i := range q.tree.Len() {
		id := quota.ID(i)
		if raw := q.history.Raw(id); raw > 0.5 {
			u.Billed[q.tree.Name(id)] = raw
		}
		if used := q.budget.assoc[i].used; worth(used) {
			u.Accounts[q.tree.Name(id)] = used
		}
	}
	for k, s := range q.budget.qos {
		if worth(s.used) {
			u.QOS[k.qos+"/"+k.user+"/"+k.account] = s.used
		}
	}
	return u
}

// worth reports whether anything more than half a unit for a second is in it: what has faded further is forgotten.
func worth(used [quota.Resources]float64) bool {
	for _, x := range used {
		if x > 0.5 {
			return true
		}
	}
	return false
}

// Resume goes on from u. It is called before any job is taken in; names that are gone are passed over.
func (q *Queue) Resume(u Usage) {
	if u.At == 0 {
		return
	}
	q.ticked = u.At
	for name, raw := range u.Billed {
		if id, ok := q.tree.Find(name); ok {
			q.history.Set(id, raw)
		}
	}
	for name, used := range u.Accounts {
		if id, ok := q.tree.Find(name); ok {
			q.budget.assoc[id].used = used
		}
	}
	for name, used := range u.QOS {
		part := strings.Split(name, "/")
		if len(part) != 3 || q.cfg.qos(part[0]) == nil {
			continue
		}
		k := scopeKey{qos: part[0], user: part[1], account: part[2]}
		s := q.budget.qos[k]
		s.used = used
		q.budget.qos[k] = s
	}
}

// A Standing is how an account or user stands now. Amounts are by the resource's name.
type Standing struct {
	Held      map[string]int64 `json:"held,omitempty"`      // what its running jobs have
	Available map[string]int64 `json:"available,omitempty"` // what its quota still allows, what it may borrow counted in; left out: no end
	Running   int              `json:"running"`             // jobs
	Queued    int              `json:"queued"`              // jobs, running ones among them
	Billed    float64          `json:"billed"`              // billing units times seconds used, faded
	Fair      float64          `json:"fair"`                // fair-share factor, 0 to 1; accounts have none with Fair Tree
}

// Standings are how all accounts and users stand, by name.
func (q *Queue) Standings() map[string]Standing {
	fair := q.fairShare()
	out := make(map[string]Standing, q.tree.Len())
	for i := range q.tree.Len() {
		id := quota.ID(i)
		s := q.budget.assoc[i]
		st := Standing{Running: s.jobs, Queued: s.submitted, Billed: q.history.Raw(id), Fair: fair[i]}
		for r, n := range q.budget.ledger.Available(id) {
			if n < quota.Endless {
				st.Available = with(st.Available, r, n)
			}
			if s.held[r] > 0 {
				st.Held = with(st.Held, r, s.held[r])
			}
		}
		out[q.tree.Name(id)] = st
	}
	return out
}

func with(m map[string]int64, r int, n int64) map[string]int64 {
	if m == nil {
		m = map[string]int64{}
	}
	m[quota.Resource(r).String()] = n
	return m
}
