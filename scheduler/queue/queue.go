package queue

import (
	"fmt"
	"slices"

	"github.com/assay-gpu/assay/scheduler/quota"
)

// A Queue is all jobs of a fleet, and what is counted of them. It has one caller at a time.
type Queue struct {
	cfg     Config
	max     maxima
	tree    *quota.Tree
	history *quota.History
	budget  *Budget

	jobs         map[int64]*Job
	pending      []int64 // sorted
	running      []int64 // sorted
	arrays       map[int64][]int64
	tasksRunning map[int64]int // by array
	byName       map[string][]int64

	reservations []Reservation
	early        map[string]earlyFailures
	quotas       bool    // somebody owns something, so that others can borrow
	gone         []int64 // ended by the queue itself, and not yet told
	ticked       int64   // until when usage is in the history
}

// New is an empty queue. It refuses a configuration with faults, and names all of them.
func New(cfg Config, tree *quota.Tree, now int64) (*Queue, error) {
	cfg.QOS = slices.Clone(cfg.QOS)
	cfg.Partitions = slices.Clone(cfg.Partitions)
	if err := cfg.check(tree); err != nil {
		return nil, err
	}
	q := &Queue{cfg: cfg, max: cfg.maxima(), tree: tree, history: quota.NewHistory(tree, cfg.HalfLife),
		jobs: map[int64]*Job{}, arrays: map[int64][]int64{}, tasksRunning: map[int64]int{}, byName: map[string][]int64{},
		early: map[string]earlyFailures{}, ticked: now, quotas: hasQuotas(tree)}
	q.budget = newBudget(&q.cfg, tree)
	return q, nil
}

// Submit takes a job into the queue, or refuses it with a *RefusedError.
func (q *Queue) Submit(j Job, now int64) error {
	if r := q.refuse(&j); r.Code != NoReason {
		return &RefusedError{j.ID, r}
	}
	j.State, j.Submit = Pending, now
	q.add(&j)
	return nil
}

// add takes a waiting job in.
func (q *Queue) add(j *Job) {
	q.jobs[j.ID] = j
	q.pending = insert(q.pending, j.ID)
	q.list(j)
	q.budget.submitted(j, 1)
}

// list makes j known under its array and its name.
func (q *Queue) list(j *Job) {
	if j.Array != 0 {
		q.arrays[j.Array] = append(q.arrays[j.Array], j.ID)
	}
	if j.Name != "" {
		q.byName[nameKey(j)] = append(q.byName[nameKey(j)], j.ID)
	}
}

// nameKey is what jobs that singleton takes for one have in common.
func nameKey(j *Job) string { return j.User + "\x00" + j.Name }

// Job is the job of that id as it stands, or nil.
func (q *Queue) Job(id int64) *Job { return q.jobs[id] }

// Pending and Running are the ids of the jobs that wait and run, sorted. The caller must not change them.
func (q *Queue) Pending() []int64 { return q.pending }

// Running are the ids of the jobs that run.
func (q *Queue) Running() []int64 { return q.running }

// Budget is what is held against the limits.
func (q *Queue) Budget() *Budget { return q.budget }

// Config is the queue's configuration.
func (q *Queue) Config() *Config { return &q.cfg }

// Limit is the seconds that a job may run.
func (q *Queue) Limit(j *Job) int64 { return q.cfg.partition(j.Partition).limit(j) }

// An Entry is a job that may be started, and where it stands.
type Entry struct {
	Job *Job
	Key Key
}

// Order is the jobs that may be started now, first one first. It notes on all others why they wait, and cancels those that
// can no longer meet their deadline.
func (q *Queue) Order(now int64) []Entry {
	fair := q.fairShare()
	var entries []Entry
	var gone []int64
	free := map[int64]int{} // tasks of throttled arrays that may still start
	for _, id := range q.pending {
		j := q.jobs[id]
		q.best(j, fair, now)
		if q.late(j, now) {
			gone = append(gone, id)
			continue
		}
		r := q.ineligible(j, now)
		q.age(j, r.Code == NoReason || r.Code == JobArrayTaskLimit, now)
		if r.Code == NoReason && j.Throttle > 0 {
			n, seen := free[j.Array]
			if !seen {
				n = j.Throttle - q.tasksRunning[j.Array]
			}
			if free[j.Array] = n - 1; n <= 0 {
				r = Reason{JobArrayTaskLimit, fmt.Sprintf("array %d runs %d tasks at once; others of it go first", j.Array, j.Throttle)}
			}
		}
		j.Why = r
		if r.Code != NoReason {
			continue
		}
		entries = append(entries, Entry{j, q.key(j, fair, now)})
	}
	for _, id := range gone {
		q.jobs[id].Why = Reason{DeadlineReason, "could no longer end before its deadline"}
		q.finish(q.jobs[id], Deadline, now)
		q.gone = append(q.gone, id)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return compareKeys(a.Key, b.Key) })
	return entries
}

// Key is where a job stands now, running or pending.
func (q *Queue) Key(id int64, now int64) Key { return q.key(q.jobs[id], q.fairShare(), now) }

// Keys are the keys of several jobs; fair share is worked out once for all of them.
func (q *Queue) Keys(ids []int64, now int64) []Key {
	fair, keys := q.fairShare(), make([]Key, len(ids))
	for i, id := range ids {
		keys[i] = q.key(q.jobs[id], fair, now)
	}
	return keys
}

func (q *Queue) fairShare() []float64 {
	if q.cfg.FairTree {
		return q.history.FairTree()
	}
	return q.history.Classic(q.cfg.Damp)
}

func (q *Queue) key(j *Job, fair []float64, now int64) Key {
	p, qos := q.cfg.partition(j.Partition), q.cfg.qos(j.QOS)
	k := Key{Expedited: j.Expedited, Reserved: j.Reservation != "", Tier: p.Tier, Submit: j.Submit, ID: j.ID, Rank: qos.rank}
	if q.cfg.PreemptByTier {
		k.Rank = p.Tier
	}
	if j.State == Running { // it is in the ledger already
		k.Borrows = q.budget.ledger.Borrowing(j.assoc, j.Amounts())
	} else {
		k.Borrows = q.budget.ledger.Borrows(j.assoc, j.Amounts())
	}
	k.Priority = j.Pinned
	if k.Priority == 0 {
		k.Priority = q.cfg.Weights.Sum(q.cfg.factors(j, p, qos, q.budget.assocPriority(j), fair[j.assoc], q.max, now), j.Site, j.Nice)
	}
	return k
}

func (b *Budget) assocPriority(j *Job) int {
	if l := b.limits[j.assoc]; l != nil {
		return l.Priority
	}
	return 0
}

// Factors are what the priority of a job is made of now.
func (q *Queue) Factors(id int64, now int64) Factors {
	j := q.jobs[id]
	return q.cfg.factors(j, q.cfg.partition(j.Partition), q.cfg.qos(j.QOS), q.budget.assocPriority(j), q.fairShare()[j.assoc], q.max, now)
}

// Start notes that a job runs since now.
func (q *Queue) Start(id int64, now int64) error {
	j := q.jobs[id]
	if j == nil || j.State != Pending {
		return fmt.Errorf("start job %d: it does not wait", id)
	}
	q.age(j, false, now)
	j.State, j.Start, j.End, j.Why, j.Expedited = Running, now, 0, Reason{}, false
	j.Starts++
	j.Behind = 0
	q.pending, q.running = remove(q.pending, id), insert(q.running, id)
	q.budget.Charge(j, now)
	if j.Array != 0 {
		q.tasksRunning[j.Array]++
	}
	return nil
}

// Cancel ends a job, whether it waits or runs.
func (q *Queue) Cancel(id int64, now int64) error {
	j := q.jobs[id]
	if j == nil || j.State.Done() {
		return fmt.Errorf("cancel job %d: it neither waits nor runs", id)
	}
	q.stop(j, now)
	q.finish(j, Cancelled, now)
	return nil
}

// stop takes a running job off what is counted as running.
func (q *Queue) stop(j *Job, now int64) {
	if j.State != Running {
		return
	}
	q.use(j, now)
	q.budget.Refund(j, j.Start)
	q.running = remove(q.running, j.ID)
	if j.Array != 0 {
		q.tasksRunning[j.Array]--
	}
}

// finish ends a job that no longer counts as running.
func (q *Queue) finish(j *Job, s State, now int64) {
	if j.State == Pending {
		q.age(j, false, now)
	}
	q.pending = remove(q.pending, j.ID)
	j.State, j.End = s, now
	q.budget.submitted(j, -1)
}

// Hold keeps a waiting job from starting; by says whether an operator or its user.
func (q *Queue) Hold(id int64, admin bool) {
	j := q.jobs[id]
	if admin {
		j.HeldAdmin = true
	} else {
		j.HeldUser = true
	}
}

// Release lets a held job go on. A user cannot release what an operator holds.
func (q *Queue) Release(id int64, admin bool) error {
	j := q.jobs[id]
	if j.HeldAdmin && !admin {
		return fmt.Errorf("release job %d: an operator holds it", id)
	}
	j.HeldAdmin, j.HeldUser, j.Attempts, j.NotBefore, j.Why = false, false, 0, 0, Reason{}
	return nil
}

// Tick puts what running jobs used since the last tick into the history: Slurm does it every PriorityCalcPeriod, 300 s.
func (q *Queue) Tick(now int64) {
	dt := float64(now - q.ticked)
	if dt <= 0 {
		return
	}
	q.history.Fade(dt)
	q.budget.fade(q.history, dt)
	for _, id := range q.running {
		q.use(q.jobs[id], now)
	}
	q.ticked = now
}

// use puts what j used since the last tick, or its start, into the history.
func (q *Queue) use(j *Job, now int64) {
	dt := float64(now - max(q.ticked, j.Start))
	if dt <= 0 {
		return
	}
	p, qos := q.cfg.partition(j.Partition), q.cfg.qos(j.QOS)
	q.history.Add(j.assoc, dt, p.billing(j), qos.UsageFactor)
	a := j.Amounts()
	q.budget.change(j, func(s *scope) {
		for r := range a {
			s.used[r] += dt * float64(a[r]) * qos.UsageFactor
		}
	})
}

// fade lets dt seconds pass over what accounts and QOS have used, QOS without decay aside.
func (b *Budget) fade(h *quota.History, dt float64) {
	f := h.Left(dt)
	for k, s := range b.qos {
		if b.cfg.qos(k.qos).NoDecay {
			continue
		}
		for r := range s.used {
			s.used[r] *= f
		}
		b.qos[k] = s
	}
	for i := range b.assoc {
		for r := range b.assoc[i].used {
			b.assoc[i].used[r] *= f
		}
	}
}

func insert(ids []int64, id int64) []int64 {
	i, _ := slices.BinarySearch(ids, id)
	return slices.Insert(ids, i, id)
}

func remove(ids []int64, id int64) []int64 {
	if i, ok := slices.BinarySearch(ids, id); ok {
		return slices.Delete(ids, i, i+1)
	}
	return ids
}
