package queue

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A DependencyKind is what must have happened to another job.
type DependencyKind int

// The kinds, as sbatch --dependency names them. expand, which Slurm once had to grow a running job, is refused: a gang here
// does not change its size while it runs.
const (
	After      DependencyKind = iota // it has started or was cancelled, and then minutes have passed
	AfterAny                         // it has ended
	AfterOK                          // it has ended with exit status 0
	AfterNotOK                       // it has ended otherwise
	AfterCorr                        // the task of the same index has ended with 0
	Singleton                        // every earlier job of the same name and user has ended
)

var kindNames = []string{"after", "afterany", "afterok", "afternotok", "aftercorr", "singleton"}

// A Dependency is one condition on one job or array.
type Dependency struct {
	Kind  DependencyKind
	Job   int64 // a job's or an array's id
	Delay int64 // seconds, with After
}

// Dependencies are conditions of which all, or with Any one, must hold.
type Dependencies struct {
	List []Dependency
	Any  bool
}

// ParseDependencies reads what follows --dependency=: afterok:12:13,after:14+10 or, with ? for "or", afterany:5?afterok:6.
func ParseDependencies(s string) (Dependencies, error) {
	var d Dependencies
	if s == "" {
		return d, nil
	}
	sep := ","
	if strings.Contains(s, "?") {
		if strings.Contains(s, ",") {
			return d, fmt.Errorf("dependency %q: both , and ?: all of them, or any?", s)
		}
		sep, d.Any = "?", true
	}
	for part := range strings.SplitSeq(s, sep) {
		word, rest, more := strings.Cut(part, ":")
		if word == "expand" {
			return d, fmt.Errorf("dependency %q: a gang does not change its size while it runs; submit one of the size it should have", part)
		}
		kind := -1
		for i, k := range kindNames {
			if word == k {
				kind = i
			}
		}
		if kind < 0 {
			return d, fmt.Errorf("dependency %q: no kind %q; there are %s", part, word, strings.Join(kindNames, ", "))
		}
		if DependencyKind(kind) == Singleton {
			if more {
				return d, fmt.Errorf("dependency %q: singleton names no job", part)
			}
			d.List = append(d.List, Dependency{Kind: Singleton})
			continue
		}
		if !more {
			return d, fmt.Errorf("dependency %q: after which job?", part)
		}
		for id := range strings.SplitSeq(rest, ":") {
			one := Dependency{Kind: DependencyKind(kind)}
			id, minutes, delayed := strings.Cut(id, "+")
			n, err := strconv.ParseInt(id, 10, 64)
			if err != nil || n <= 0 {
				return d, fmt.Errorf("dependency %q: %q is no job id", part, id)
			}
			one.Job = n
			if delayed {
				m, err := strconv.ParseInt(minutes, 10, 32)
				if err != nil || m < 0 || one.Kind != After {
					return d, fmt.Errorf("dependency %q: want minutes after +, and only with after", part)
				}
				one.Delay = m * 60
			}
			d.List = append(d.List, one)
		}
	}
	return d, nil
}

// String writes the dependencies in the form that ParseDependencies reads.
func (d Dependencies) String() string {
	var parts []string
	for _, x := range d.List {
		s := kindNames[x.Kind]
		if x.Kind != Singleton {
			s += ":" + strconv.FormatInt(x.Job, 10)
		}
		if x.Delay > 0 {
			s += fmt.Sprintf("+%d", x.Delay/60)
		}
		parts = append(parts, s)
	}
	if d.Any {
		return strings.Join(parts, "?")
	}
	return strings.Join(parts, ",")
}

// An outcome is how one condition stands.
type outcome int

const (
	waits outcome = iota
	holds
	never
)

// stands says how the job's dependencies stand, and names the one that decides.
func (q *Queue) stands(j *Job, now int64) (outcome, string) {
	if len(j.After.List) == 0 {
		return holds, ""
	}
	waiting, dead := "", ""
	for _, d := range j.After.List {
		o, why := q.dependency(j, d, now)
		switch {
		case o == holds && j.After.Any:
			return holds, ""
		case o == never && !j.After.Any:
			return never, why
		case o == never:
			dead = cmp.Or(dead, why)
		case o == waits:
			waiting = cmp.Or(waiting, why)
		}
	}
	switch {
	case waiting != "":
		return waits, waiting
	case dead != "": // all of them: with Any, one that holds has been returned
		return never, dead
	}
	return holds, ""
}

func (q *Queue) dependency(j *Job, d Dependency, now int64) (outcome, string) {
	if d.Kind == Singleton {
		for _, id := range q.byName[nameKey(j)] {
			if o := q.jobs[id]; o.ID < j.ID && !o.State.Done() {
				return waits, fmt.Sprintf("singleton: job %d of the same name %q is %s", o.ID, o.Name, o.State)
			}
		}
		return holds, ""
	}
	ids := q.arrays[d.Job]
	if len(ids) == 0 {
		ids = []int64{d.Job}
	}
	result, text := holds, ""
	for _, id := range ids {
		o := q.jobs[id]
		if o == nil {
			// As Slurm: a job that is long gone, or never was, can no longer fulfil what needs its exit status.
			if d.Kind == After || d.Kind == AfterAny {
				continue
			}
			return never, fmt.Sprintf("%s: job %d is not known", kindNames[d.Kind], d.Job)
		}
		if d.Kind == AfterCorr && (o.Array == 0 || j.Array == 0 || o.Task != j.Task) && len(ids) > 1 {
			continue
		}
		switch state(d, o, now) {
		case waits:
			result, text = waits, fmt.Sprintf("%s: job %d is %s", kindNames[d.Kind], o.ID, o.State)
		case never:
			return never, fmt.Sprintf("%s: job %d ended %s with exit status %d", kindNames[d.Kind], o.ID, o.State, o.Exit)
		}
	}
	return result, text
}

// state is how one condition on one job stands.
func state(d Dependency, o *Job, now int64) outcome {
	ok := o.State == Completed && o.Exit == 0
	switch {
	case d.Kind == After:
		begun := o.Start
		if o.State.Done() && o.Starts == 0 {
			begun = o.End // cancelled before it ran
		}
		if (o.State == Pending && o.Starts == 0) || now < begun+d.Delay {
			return waits
		}
		return holds
	case !o.State.Done():
		return waits
	case d.Kind == AfterAny, d.Kind == AfterNotOK && !ok, d.Kind != AfterNotOK && ok:
		return holds
	}
	return never
}
