package queue

import (
	"fmt"

	"github.com/assay-gpu/assay/scheduler/quota"
)

// Admit says which limit j would exceed if it started now; no reason when none.
//
// For limits of the same kind the first place that sets one decides: the QOS in the order of places, then the user, the
// account and so on up to the root. Group limits hold at each place. The partition's limits hold beside all.
func (b *Budget) Admit(j *Job, now int64) Reason {
	p := b.cfg.partition(j.Partition)
	if r := p.admits(j); r.Code != NoReason {
		return r
	}
	if r := b.oneJob(j, p); r.Code != NoReason {
		return r
	}
	for _, q := range b.places(j) {
		if r := b.group(j, p, &q.Limits, b.qos[scopeKey{qos: q.Name}], now, qosGrp, "QOS "+q.Name); r.Code != NoReason {
			return r
		}
	}
	if r := b.perUser(j); r.Code != NoReason {
		return r
	}
	for id, ok := j.assoc, true; ok; id, ok = b.tree.Parent(id) {
		if l := b.limits[id]; l != nil {
			if r := b.group(j, p, l, b.assoc[id], now, assocGrp, "account "+b.tree.Name(id)); r.Code != NoReason {
				return r
			}
		}
	}
	if r := b.perAssoc(j); r.Code != NoReason {
		return r
	}
	if short, ok := b.ledger.Fits(j.assoc, j.Amounts()); !ok {
		have := max(0, b.ledger.Available(j.assoc)[short])
		return Reason{AssocQuota, fmt.Sprintf("asks %d %s; account %s can still take %d, what it may borrow counted in", j.Amounts()[short], short, j.Account, have)}
	}
	return Reason{}
}

// admits holds the partition's own limits against j.
func (p *Partition) admits(j *Job) Reason {
	switch {
	case p.State == Down:
		return Reason{PartitionDown, fmt.Sprintf("partition %s is down", p.Name)}
	case p.State == Inactive:
		return Reason{PartitionInactive, fmt.Sprintf("partition %s is inactive", p.Name)}
	case p.MaxNodes > 0 && j.Nodes > p.MaxNodes:
		return Reason{PartitionNodeLimit, fmt.Sprintf("asks %d nodes; partition %s allows %d", j.Nodes, p.Name, p.MaxNodes)}
	case j.Nodes < p.MinNodes:
		return Reason{PartitionNodeLimit, fmt.Sprintf("asks %d nodes; partition %s wants %d at least", j.Nodes, p.Name, p.MinNodes)}
	case p.MaxTime > 0 && j.Limit > p.MaxTime:
		return Reason{PartitionTimeLimit, fmt.Sprintf("asks %s; partition %s allows %s", span(j.Limit), p.Name, span(p.MaxTime))}
	}
	return Reason{}
}

// oneJob holds the limits on a single job against j: whatever else runs, they would not let it start.
func (b *Budget) oneJob(j *Job, p *Partition) Reason {
	limit := p.limit(j)
	for _, q := range b.places(j) {
		if m := q.Limits.MaxWall; m != quota.Unset {
			if limit > m {
				return Reason{QOSMaxWallDurationPerJobLimit, fmt.Sprintf("asks %s; QOS %s allows %s", span(limit), q.Name, span(m))}
			}
			break
		}
	}
	if who, m := b.wall(j); m != quota.Unset && limit > m {
		return Reason{AssocMaxWallDurationPerJob, fmt.Sprintf("asks %s; account %s allows %s", span(limit), who, span(m))}
	}
	for r := range quota.Resources {
		for _, x := range []struct {
			limit func(*Limits) int64
			asks  int64
			of    Code
			text  string
		}{
			{func(l *Limits) int64 { return l.MaxPerJob[r] }, j.Amounts()[r], perJob, "a job"},
			{func(l *Limits) int64 { return l.MaxPerNode[r] }, j.perNode()[r], "PerNode", "a node of a job"},
		} {
			place, m, qos := b.firstSet(j, x.limit)
			if m == quota.Unset || x.asks <= m {
				continue
			}
			code := assocMax + tresCode[r] + x.of
			if qos {
				code = qosMax + tresCode[r] + x.of
			}
			return Reason{code, fmt.Sprintf("asks %d %s; %s allows %s %d", x.asks, quota.Resource(r), place, x.text, m)}
		}
	}
	return Reason{}
}

// firstSet is the first place that sets a limit, QOS before accounts.
func (b *Budget) firstSet(j *Job, limit func(*Limits) int64) (place string, value int64, qos bool) {
	for _, q := range b.places(j) {
		if m := limit(&q.Limits); m != quota.Unset {
			return "QOS " + q.Name, m, true
		}
	}
	for id, ok := j.assoc, true; ok; id, ok = b.tree.Parent(id) {
		if l := b.limits[id]; l != nil && limit(l) != quota.Unset {
			return "account " + b.tree.Name(id), limit(l), false
		}
	}
	return "", quota.Unset, false
}

// wall is the first time limit that the user or an account over him sets.
func (b *Budget) wall(j *Job) (string, int64) {
	for id, ok := j.assoc, true; ok; id, ok = b.tree.Parent(id) {
		if l := b.limits[id]; l != nil && l.MaxWall != quota.Unset {
			return b.tree.Name(id), l.MaxWall
		}
	}
	return "", quota.Unset
}

// group holds the group limits l of one place, which has s now, against j.
func (b *Budget) group(j *Job, p *Partition, l *Limits, s scope, now int64, prefix Code, who string) Reason {
	if l.GrpJobs != quota.Unset && s.jobs+1 > l.GrpJobs {
		return Reason{prefix + "JobsLimit", fmt.Sprintf("%s may run %d jobs and runs %d", who, l.GrpJobs, s.jobs)}
	}
	a, limit := j.Amounts(), p.limit(j)
	for r := range a {
		res := quota.Resource(r)
		if a[r] == 0 {
			continue
		}
		if m := l.Grp[r]; m != quota.Unset && s.held[r]+a[r] > m {
			return Reason{prefix + tresCode[r], fmt.Sprintf("asks %d %s; %s may hold %d and holds %d", a[r], res, who, m, s.held[r])}
		}
		if m := l.GrpRunMinutes[r]; m != quota.Unset && s.runSeconds(r, now)+a[r]*limit > m*60 {
			return Reason{prefix + tresCode[r] + runMinutes, fmt.Sprintf("asks %d %s minutes; %s may have %d outstanding and has %d", a[r]*limit/60, res, who, m, s.runSeconds(r, now)/60)}
		}
		if m := l.GrpMinutes[r]; m != quota.Unset && s.used[r]+float64(s.runSeconds(r, now)+a[r]*limit) > float64(m*60) {
			return Reason{prefix + tresCode[r] + minutes, fmt.Sprintf("asks %d %s minutes; %s has used %.0f of %d and has %d outstanding", a[r]*limit/60, res, who, s.used[r]/60, m, s.runSeconds(r, now)/60)}
		}
	}
	return Reason{}
}

// perUser holds the limits that a QOS sets on each user and each account against j; the first QOS that sets one decides.
func (b *Budget) perUser(j *Job) Reason {
	places := b.places(j)
	set := func(limit func(*Limits) int64) (*QOS, int64) {
		for _, q := range places {
			if m := limit(&q.Limits); m != quota.Unset {
				return q, m
			}
		}
		return nil, quota.Unset
	}
	if q, m := set(func(l *Limits) int64 { return int64(l.MaxJobs) }); q != nil {
		if n := b.qos[scopeKey{qos: q.Name, user: j.User}].jobs; int64(n)+1 > m {
			return Reason{QOSMaxJobsPerUserLimit, fmt.Sprintf("QOS %s lets a user run %d jobs; %s runs %d", q.Name, m, j.User, n)}
		}
	}
	if q, m := set(func(l *Limits) int64 { return int64(l.MaxJobsPerAccount) }); q != nil {
		if n := b.qos[scopeKey{qos: q.Name, account: j.Account}].jobs; int64(n)+1 > m {
			return Reason{MaxJobsPerAccount, fmt.Sprintf("QOS %s lets an account run %d jobs; %s runs %d", q.Name, m, j.Account, n)}
		}
	}
	a := j.Amounts()
	for r := range a {
		if q, m := set(func(l *Limits) int64 { return l.MaxPerUser[r] }); q != nil {
			if n := b.qos[scopeKey{qos: q.Name, user: j.User}].held[r]; n+a[r] > m {
				return Reason{qosMax + tresCode[r] + perUser, fmt.Sprintf("asks %d %s; QOS %s lets a user hold %d and %s holds %d", a[r], quota.Resource(r), q.Name, m, j.User, n)}
			}
		}
		if q, m := set(func(l *Limits) int64 { return l.MaxPerAccount[r] }); q != nil {
			if n := b.qos[scopeKey{qos: q.Name, account: j.Account}].held[r]; n+a[r] > m {
				return Reason{maxAcct + tresCode[r] + perAccount, fmt.Sprintf("asks %d %s; QOS %s lets an account hold %d and %s holds %d", a[r], quota.Resource(r), q.Name, m, j.Account, n)}
			}
		}
	}
	return Reason{}
}

// perAssoc holds the first job count that the user or an account over him sets against the user's own jobs, unless a QOS
// has set one.
func (b *Budget) perAssoc(j *Job) Reason {
	for _, q := range b.places(j) {
		if q.Limits.MaxJobs != quota.Unset {
			return Reason{}
		}
	}
	for id, ok := j.assoc, true; ok; id, ok = b.tree.Parent(id) {
		l := b.limits[id]
		if l == nil || l.MaxJobs == quota.Unset {
			continue
		}
		if n := b.assoc[j.assoc].jobs; n+1 > l.MaxJobs {
			return Reason{AssocMaxJobsLimit, fmt.Sprintf("account %s lets %s run %d jobs; %d run", b.tree.Name(id), j.User, l.MaxJobs, n)}
		}
		break
	}
	return Reason{}
}

// span writes seconds as Slurm does: 1-02:03:04.
func span(s int64) string {
	d, h, m := s/86400, s/3600%24, s/60%60
	if d > 0 {
		return fmt.Sprintf("%d-%02d:%02d:%02d", d, h, m, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", h, m, s%60)
}
