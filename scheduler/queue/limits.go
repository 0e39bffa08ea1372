package queue

import "github.com/assay-gpu/assay/scheduler/quota"

// Limits are what a QOS, an account or a user may have at once. Unset (-1) is no limit; make them with NoLimits.
type Limits struct {
	Priority int // an account's or user's, for the association factor

	GrpJobs, GrpSubmit int           // running; running and pending: all together
	Grp                quota.Amounts // held by all together
	GrpRunMinutes      quota.Amounts // amounts times the minutes that running jobs may still run
	GrpMinutes         quota.Amounts // amounts times minutes used, fading with the half-life

	MaxJobs, MaxSubmit                     int // of a QOS: of each of its users; of an account or user: its own
	MaxJobsPerAccount, MaxSubmitPerAccount int // of a QOS
	MaxAccrue                              int // of a QOS: jobs of one user whose age counts
	MaxPerUser, MaxPerAccount              quota.Amounts

	MaxPerJob, MaxPerNode quota.Amounts
	MaxWall               int64 // seconds
}

// NoLimits are limits of which none is set.
func NoLimits() Limits {
	const u = quota.Unset
	none := quota.None()
	return Limits{GrpJobs: u, GrpSubmit: u, Grp: none, GrpRunMinutes: none, GrpMinutes: none, MaxJobs: u, MaxSubmit: u,
		MaxJobsPerAccount: u, MaxSubmitPerAccount: u, MaxAccrue: u, MaxPerUser: none, MaxPerAccount: none, MaxPerJob: none, MaxPerNode: none, MaxWall: u}
}

// A scope is what one QOS, user of a QOS, account of a QOS, or account has now.
type scope struct {
	jobs, submitted, accruing int
	held                      quota.Amounts
	heldUntil                 quota.Amounts // sum of amounts times the second of the limit's end
	used                      [quota.Resources]float64
}

// runSeconds is amounts times the seconds that its running jobs may still run.
func (s *scope) runSeconds(r int, now int64) int64 { return s.heldUntil[r] - s.held[r]*now }

// A scopeKey names a scope of a QOS: all of it, one user's part, or one account's part.
type scopeKey struct{ qos, user, account string }

// A Budget counts what is held against all limits. A copy of it lets a plan start jobs in thought.
type Budget struct {
	cfg    *Config
	tree   *quota.Tree
	ledger *quota.Ledger
	qos    map[scopeKey]scope
	assoc  []scope   // by account
	limits []*Limits // by account; nil: none
}

func newBudget(cfg *Config, tree *quota.Tree) *Budget {
	b := &Budget{cfg: cfg, tree: tree, ledger: quota.NewLedger(tree), qos: map[scopeKey]scope{}, assoc: make([]scope, tree.Len()), limits: make([]*Limits, tree.Len())}
	for name, l := range cfg.Assoc {
		if id, ok := tree.Find(name); ok {
			b.limits[id] = &l
		}
	}
	return b
}

// Clone is a copy that counts by itself.
func (b *Budget) Clone() *Budget {
	c := *b
	c.ledger = b.ledger.Clone()
	c.qos = make(map[scopeKey]scope, len(b.qos))
	for k, v := range b.qos {
		c.qos[k] = v
	}
	c.assoc = append([]scope(nil), b.assoc...)
	return &c
}

// Ledger is what the accounts hold.
func (b *Budget) Ledger() *quota.Ledger { return b.ledger }

// change applies f to every scope that counts j.
func (b *Budget) change(j *Job, f func(*scope)) {
	one := func(k scopeKey) {
		s := b.qos[k]
		f(&s)
		b.qos[k] = s
	}
	for _, q := range b.places(j) {
		one(scopeKey{qos: q.Name})
		one(scopeKey{qos: q.Name, user: j.User})
		one(scopeKey{qos: q.Name, account: j.Account})
	}
	for id, ok := j.assoc, true; ok; id, ok = b.tree.Parent(id) {
		f(&b.assoc[id])
	}
}

// places are the QOS whose limits hold for j, the one that decides first: the partition's, then the job's, or the other way
// round with OverPartQOS.
func (b *Budget) places(j *Job) []*QOS {
	p, own := b.cfg.partition(j.Partition), b.cfg.qos(j.QOS)
	if p.QOS == "" || p.QOS == j.QOS {
		return []*QOS{own}
	}
	part := b.cfg.qos(p.QOS)
	if own.OverPartQOS {
		return []*QOS{own, part}
	}
	return []*QOS{part, own}
}

// Charge counts j as running since start.
func (b *Budget) Charge(j *Job, start int64) {
	a, end := j.Amounts(), start+b.cfg.partition(j.Partition).limit(j)
	b.change(j, func(s *scope) {
		s.jobs++
		s.held, s.heldUntil = s.held.Plus(a), s.heldUntil.Plus(a.Times(end))
	})
	b.ledger.Charge(j.assoc, a)
}

// Refund undoes Charge.
func (b *Budget) Refund(j *Job, start int64) {
	a, end := j.Amounts(), start+b.cfg.partition(j.Partition).limit(j)
	b.change(j, func(s *scope) {
		s.jobs--
		s.held, s.heldUntil = s.held.Minus(a), s.heldUntil.Minus(a.Times(end))
	})
	b.ledger.Release(j.assoc, a)
}

// submitted counts j as known to the queue, or with -1 no more.
func (b *Budget) submitted(j *Job, n int) { b.change(j, func(s *scope) { s.submitted += n }) }
