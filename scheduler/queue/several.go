package queue

import (
	"fmt"
	"slices"
)

// A job may name several partitions, as in Slurm: it waits in all of them, stands in the order where the best of them puts
// it, and starts where it can first. Job.Partition is then the one it stands in now; once it runs, the one it runs in.

// takes is why a partition does not take j, whatever runs; no reason when it does.
func (p *Partition) takes(j *Job) Reason {
	switch {
	case len(p.AllowQOS) > 0 && !slices.Contains(p.AllowQOS, j.QOS):
		return Reason{InvalidQOS, fmt.Sprintf("partition %s does not take QOS %s", p.Name, j.QOS)}
	case len(p.AllowAcct) > 0 && !slices.Contains(p.AllowAcct, j.Account), slices.Contains(p.DenyAcct, j.Account):
		return Reason{InvalidAccount, fmt.Sprintf("partition %s does not take account %s", p.Name, j.Account)}
	}
	return Reason{}
}

// refuse is why j cannot be submitted; no reason when it can: to one of its partitions, if it names several.
func (q *Queue) refuse(j *Job) Reason {
	if len(j.Partitions) == 0 {
		return q.refuseIn(j)
	}
	var first Reason
	for i, name := range j.Partitions {
		in := *j
		in.Partition = name
		r := q.refuseIn(&in)
		if r.Code == NoReason {
			j.Partition, j.assoc = name, in.assoc
			return r
		}
		if i == 0 {
			first = r
		}
	}
	return first
}

// Choose puts a waiting job into one of its partitions: what counts for the partition's QOS counts there from now on.
func (q *Queue) Choose(id int64, partition string) {
	j := q.jobs[id]
	if j == nil || j.Partition == partition || !slices.Contains(j.Partitions, partition) {
		return
	}
	accrues := j.Accrue > 0 && !q.cfg.Flags.AccrueAlways
	count := func(n int) {
		q.budget.submitted(j, n)
		if accrues {
			q.budget.change(j, func(s *scope) { s.accruing += n })
		}
	}
	count(-1)
	j.Partition = partition
	count(1)
}

// best puts j where it stands first.
func (q *Queue) best(j *Job, fair []float64, now int64) {
	if names := q.ranked(j, fair, now); len(names) > 0 {
		q.Choose(j.ID, names[0])
	}
}

// ranked are the partitions of j that take it, by where it would stand, the first one first.
func (q *Queue) ranked(j *Job, fair []float64, now int64) []string {
	type place struct {
		name string
		key  Key
	}
	var all []place
	for _, name := range j.Partitions {
		if p := q.cfg.partition(name); p != nil && p.takes(j).Code == NoReason {
			in := *j
			in.Partition = name
			all = append(all, place{name, q.key(&in, fair, now)})
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return compareKeys(a.key, b.key) })
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = x.name
	}
	return names
}

// Spread puts, behind each job that waits in several partitions, what it would be in the others: more ways to start it, in the
// order in which they are tried.
func (q *Queue) Spread(entries []Entry, now int64) []Entry {
	var out []Entry
	var fair []float64
	for i, e := range entries {
		if len(e.Job.Partitions) > 0 && out == nil {
			fair = q.fairShare()
			out = append(make([]Entry, 0, 2*len(entries)), entries[:i]...)
		}
		if out == nil {
			continue
		}
		out = append(out, e)
		for _, name := range q.ranked(e.Job, fair, now) {
			if name != e.Job.Partition {
				in := *e.Job
				in.Partition = name
				out = append(out, Entry{&in, e.Key})
			}
		}
	}
	if out == nil {
		return entries // nobody names several
	}
	return out
}
