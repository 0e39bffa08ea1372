package slurm

import (
	"slices"
	"time"
)

// Kinds of observation.
const (
	Drained       = "drained"        // drained, and not by us
	Resumed       = "resumed"        // our drain is gone, and it was not us
	ReasonChanged = "reason_changed" // our drain stands, its reason is another's
	Undrained     = "undrained"      // somebody else's drain is gone
	JobsChanged   = "jobs_changed"   // the jobs on the node are others than before
	Rebooted      = "rebooted"       // slurmctld saw a new boot
	Down          = "down"           // base state DOWN
	Up            = "up"             // DOWN no more
	Silent        = "silent"         // slurmd does not answer
	Answering     = "answering"      // slurmd answers again
)

// A View is one node and the jobs on it, as one reading of Slurm showed them.
type View struct {
	At   time.Time // when the reading began: what happened later may be missing from it
	Node Node
	Jobs []Job // that take the node
}

// A Record is what we know of our own doing.
type Record struct {
	DrainedByUs bool      // our drain was carried out and we have not resumed
	Reason      string    // ours: the one written, or the one of a drain under way
	Foreign     string    // user whose drain we know of; "" when none
	Since       time.Time // when our last change in Slurm ended: older views say nothing
}

// An Observation is one thing that changed at a node in Slurm without us.
type Observation struct {
	Kind    string
	Node    string
	User    string // who, where Slurm says it: for Undrained whose drain it was
	Reason  string // as Slurm shows it
	BySlurm bool   // the reason is one of Slurm's own: nobody's decision
	Jobs    []Job  // on the node now; with Drained also those that were on it before, of which one's prolog may have failed
}

// Observe compares two views of a node with our record. prev may be nil: a new leader's first view, in which all that
// differs from the record is reported; what was known before may then be reported once more. It is pure.
func Observe(prev *View, cur View, rec Record) []Observation {
	if cur.At.Before(rec.Since) {
		return nil
	}
	if prev != nil && prev.At.Before(rec.Since) {
		// Between the two we changed Slurm: what differs may be our own doing. Jobs, boots and slurmd are not.
		return append(observeDrain(nil, cur, rec), observeNode(prev, cur)...)
	}
	return append(observeDrain(prev, cur, rec), observeNode(prev, cur)...)
}

func observeDrain(prev *View, cur View, rec Record) []Observation {
	n, drained := cur.Node, cur.Node.Drained()
	was := prev != nil && prev.Node.Drained()
	sameReason := was && BareReason(prev.Node.Reason) == BareReason(n.Reason)
	ours := rec.Reason != "" && SameReason(n.Reason, rec.Reason)
	see := func(kind string) []Observation {
		return []Observation{{Kind: kind, Node: n.Name, User: n.ReasonUser, Reason: n.Reason, BySlurm: IsSlurmReason(n.Reason), Jobs: cur.Jobs}}
	}
	switch {
	case rec.DrainedByUs && !drained:
		if prev != nil && !was {
			return nil // said before
		}
		return []Observation{{Kind: Resumed, Node: n.Name, Jobs: cur.Jobs}}
	case rec.DrainedByUs && (ours || sameReason):
		return nil
	case rec.DrainedByUs:
		return see(ReasonChanged)
	case drained && (ours || sameReason):
		return nil
	case drained:
		seen := see(Drained)
		if prev != nil {
			seen[0].Jobs = union(cur.Jobs, prev.Jobs)
		}
		return seen
	case was:
		if rec.Reason != "" && SameReason(prev.Node.Reason, rec.Reason) {
			return nil // our own drain's end
		}
		return []Observation{{Kind: Undrained, Node: n.Name, User: prev.Node.ReasonUser, Reason: prev.Node.Reason, BySlurm: IsSlurmReason(prev.Node.Reason), Jobs: cur.Jobs}}
	case prev == nil && rec.Foreign != "":
		return []Observation{{Kind: Undrained, Node: n.Name, User: rec.Foreign, Jobs: cur.Jobs}}
	}
	return nil
}

// bootSlack is how much two readings of one boot may differ: slurmd computes the time as now less uptime, in seconds.
const bootSlack = 5 * time.Second

func observeNode(prev *View, cur View) []Observation {
	var seen []Observation
	n := cur.Node
	add := func(kind string, now, before bool) {
		if now && !before {
			seen = append(seen, Observation{Kind: kind, Node: n.Name, User: n.ReasonUser, Reason: n.Reason, BySlurm: IsSlurmReason(n.Reason), Jobs: cur.Jobs})
		}
	}
	add(Down, down(n), prev != nil && down(prev.Node))
	add(Silent, silent(n), prev != nil && silent(prev.Node))
	if prev == nil {
		if len(cur.Jobs) > 0 {
			seen = append(seen, Observation{Kind: JobsChanged, Node: n.Name, Jobs: cur.Jobs})
		}
		return seen
	}
	add(Up, down(prev.Node), down(n))
	add(Answering, silent(prev.Node), silent(n))
	if was, is := prev.Node.BootTime, n.BootTime; !was.IsZero() && !is.IsZero() && is.Sub(was) > bootSlack {
		seen = append(seen, Observation{Kind: Rebooted, Node: n.Name, Jobs: cur.Jobs})
	}
	if !slices.Equal(ids(prev.Jobs), ids(cur.Jobs)) {
		seen = append(seen, Observation{Kind: JobsChanged, Node: n.Name, Jobs: cur.Jobs})
	}
	return seen
}

// down: a node that Slurm is rebooting or powering shows DOWN on the way.
func down(n Node) bool { return n.State == "DOWN" && !n.Away() }

// silent: a node that has just been resumed does not answer, and has no boot time, until slurmctld's next ping.
func silent(n Node) bool { return n.Has(FlagNotResponding) && !n.BootTime.IsZero() && !n.Away() }

func ids(jobs []Job) []string {
	out := make([]string, len(jobs))
	for i, j := range jobs {
		out[i] = j.ID
	}
	slices.Sort(out)
	return out
}

func union(a, b []Job) []Job {
	out := slices.Clone(a)
	for _, j := range b {
		if !slices.ContainsFunc(a, func(o Job) bool { return o.ID == j.ID }) {
			out = append(out, j)
		}
	}
	return out
}

// ByNode sorts jobs under the nodes they take.
func ByNode(jobs []Job) map[string][]Job {
	m := map[string][]Job{}
	for _, j := range jobs {
		if !j.OnNodes() {
			continue
		}
		for _, n := range j.Nodes {
			m[n] = append(m[n], j)
		}
	}
	return m
}
