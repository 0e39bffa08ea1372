package coordinator

import (
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// An entrance says who may submit what. It belongs to the apply loop, which counts in it the jobs that go on.
type entrance struct {
	whole   rules.Book
	door    *queue.Door
	members map[rules.Member]bool
	limited bool             // the number of jobs is
	counted map[int64]string // where it is: the jobs that go on, each with the partition it was counted in
}

// entrance is made anew after the rules have changed, and when an account has its first job of a user.
func (l *lead) entrance(t *tx) *entrance {
	if l.gate == nil {
		l.gate = newEntrance(t.base, nil)
	}
	return l.gate
}

func newEntrance(s *state, more []rules.Member) *entrance {
	e := &entrance{whole: s.book.Whole(), members: map[rules.Member]bool{}, counted: map[int64]string{}}
	members := append(s.members(), more...)
	for _, m := range members {
		e.members[m] = true
	}
	cfg, tree, err := e.whole.Build(rules.Fleet{"node": 8}, members)
	if err != nil {
		return e // said when the rules were kept; the planner says it again
	}
	q, err := queue.New(cfg, tree, 0)
	if err != nil {
		return e
	}
	q.SetReservations(e.whole.Reserve(0, func(string) (int32, bool) { return 0, false }))
	e.door = queue.NewDoor(q)
	if e.limited = e.door.Limited(); e.limited {
		for id, j := range s.jobs {
			e.follow(id, &j)
		}
	}
	return e
}

// follow counts a job as it now is; nil: it is no more.
func (e *entrance) follow(id int64, j *job) {
	goes := j != nil && !j.over()
	in, counted := e.counted[id]
	switch {
	case goes && !counted:
		e.counted[id] = j.Queue.Partition
		e.door.Count(j.Queue, 1)
	case !goes && counted && j != nil:
		delete(e.counted, id)
		q := j.Queue
		q.Partition = in // it may have run in another that it named
		e.door.Count(q, -1)
	}
}

// settle follows a transaction that was committed.
func (e *entrance) settle(t *tx) {
	if e == nil || !e.limited {
		return
	}
	for id, j := range t.tasks {
		e.follow(id, &j)
	}
	for id, j := range t.jobs {
		e.follow(id, j)
	}
}

// admit refuses n jobs like j together, if the rules do.
func (e *entrance) admit(t *tx, j job, n int) error {
	if m := (rules.Member{Account: j.Account, User: j.User}); !e.members[m] {
		*e = *newEntrance(t.base, []rules.Member{m})
		e.members[m] = true
	}
	if e.door == nil {
		return &refusedError{"the rules of this fleet have a fault", "`assay account load` says which"}
	}
	if !e.limited {
		return refusedBy(e.door.Refuse(j.Queue))
	}
	// What came before it in the same transaction counts, but only until that is committed.
	var before []queue.Job
	count := func(q queue.Job) {
		e.door.Count(q, 1)
		before = append(before, q)
	}
	defer func() {
		for _, q := range before {
			e.door.Count(q, -1)
		}
	}()
	for id, o := range t.tasks {
		if _, counted := e.counted[id]; !counted && !o.over() {
			count(o.Queue)
		}
	}
	for id, o := range t.jobs {
		_, task := t.tasks[id]
		_, counted := e.counted[id]
		if o != nil && !task && !counted && !o.over() {
			count(o.Queue)
		}
	}
	for k := range n {
		if err := refusedBy(e.door.Refuse(j.Queue)); err != nil {
			return err
		}
		if k+1 < n {
			count(j.Queue)
		}
	}
	return nil
}

func refusedBy(r queue.Reason) error {
	if r.Code == queue.NoReason {
		return nil
	}
	return notTaken(r)
}

// notTaken says why a job is not taken in: Slurm's word and a sentence with numbers.
func notTaken(r queue.Reason) error {
	return &refusedError{"not submitted: " + sentence(r), "`assay partition list`, `assay qos list` and `assay account list` show what there is and its limits"}
}
