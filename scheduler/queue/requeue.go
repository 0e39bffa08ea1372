package queue

import (
	"fmt"
	"slices"
)

// RequeueRules say when a job that ended by no fault of its own is started again.
type RequeueRules struct {
	Backoff     int64 // seconds before the second start; doubles with each failed one
	MaxBackoff  int64 // seconds
	MaxAttempts int   // failed starts after which the job is held
	MaxPerNode  int   // failures on one node after which the job avoids it
	AvoidFor    int64 // seconds for which it does: a gang as wide as the fleet must not wait for ever
	// A run shorter than Early seconds that failed counts against its node; EarlyJobs different jobs in a row make the
	// node suspect: it is always free, so it would eat job after job.
	Early     int64
	EarlyJobs int
}

// DefaultRequeueRules are five starts as Slurm's MaxBatchRequeue, a minute to an hour apart. Meta had one job fail 35 times
// and push out 548 others ("Revisiting Reliability", HPCA'25): hence caps per job and per node.
func DefaultRequeueRules() RequeueRules {
	return RequeueRules{Backoff: 60, MaxBackoff: 3600, MaxAttempts: 5, MaxPerNode: 2, AvoidFor: 24 * 3600, Early: 60, EarlyJobs: 3}
}

// An Ending is how a run ended.
type Ending struct {
	State State  // Completed, Failed, Timeout, NodeFail or Preempted
	Exit  int    // exit status
	Node  string // the node to blame, if any
	// Launch is true when no user code ran: prolog, barrier or certificate failed.
	Launch bool
	// Again is true when a person wants the job started again: it goes back whatever it was submitted with, at once, and with
	// no mark against it.
	Again bool
	At    int64
}

// An EndResult says what followed.
type EndResult struct {
	Requeued bool
	Held     bool
	Suspect  string // a node that should be looked at: it ended several jobs early
}

// earlyFailures are the different jobs that a node ended early, since one ran well there.
type earlyFailures struct{ jobs []int64 }

// End notes that a running job ended, and starts it over where the rules say so. The same job id goes on, as in Slurm.
func (q *Queue) End(id int64, e Ending) (EndResult, error) {
	j := q.jobs[id]
	if j == nil || j.State != Running {
		return EndResult{}, fmt.Errorf("end job %d: it does not run", id)
	}
	q.stop(j, e.At)
	j.Exit = e.Exit
	var result EndResult
	result.Suspect = q.noteNode(j, e)
	own := e.State == Completed || e.State == Timeout || e.State == Cancelled
	wanted := e.State == Failed && slices.Contains(j.RequeueExit, e.Exit)
	again := e.Again || !own && (e.Launch || wanted || (j.Requeue && e.State != Failed))
	if !again {
		q.finish(j, e.State, e.At)
		return result, nil
	}
	result.Requeued = true
	j.State, j.End = Pending, e.At
	q.pending = insert(q.pending, j.ID)
	j.blame(e.Node, e.At)
	switch {
	case e.Again:
	case e.State == Preempted:
		// It did nothing wrong and keeps its place; the preemptor's claim keeps it from coming back too early.
	case e.State == NodeFail && !e.Launch:
		j.Expedited = true // first claim on a replacement: volcano 5805
	default:
		j.Attempts++
		wait := q.cfg.Requeue.Backoff << min(j.Attempts-1, 20)
		j.NotBefore = e.At + min(wait, q.cfg.Requeue.MaxBackoff)
		if j.Attempts >= q.cfg.Requeue.MaxAttempts {
			j.HeldAdmin = true
			j.Why = Reason{JobHoldMaxRequeue, fmt.Sprintf("failed to start %d times, last on %s; held until someone looks", j.Attempts, orNone(e.Node))}
			result.Held = true
		}
	}
	return result, nil
}

func orNone(node string) string {
	if node == "" {
		return "no node in particular"
	}
	return node
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// lastBad is the node on which it failed last; empty for none.
func (j *Job) lastBad() string {
	last := Bad{}
	for _, b := range j.Bad {
		if b.At >= last.At {
			last = b
		}
	}
	return last.Node
}

func (j *Job) blame(node string, at int64) {
	if node == "" {
		return
	}
	for i := range j.Bad {
		if j.Bad[i].Node == node {
			j.Bad[i].Failures, j.Bad[i].At = j.Bad[i].Failures+1, at
			return
		}
	}
	j.Bad = append(j.Bad, Bad{node, 1, at})
}

// Avoid are the nodes on which a job failed so often, not long ago, that it is not started there now.
func (q *Queue) Avoid(j *Job, now int64) []string {
	var nodes []string
	for _, b := range j.Bad {
		if b.Failures >= q.cfg.Requeue.MaxPerNode && now < b.At+q.cfg.Requeue.AvoidFor {
			nodes = append(nodes, b.Node)
		}
	}
	return nodes
}

// noteNode counts an early failure against its node and returns the node's name when it has become suspect.
func (q *Queue) noteNode(j *Job, e Ending) string {
	if e.Node == "" {
		return ""
	}
	failed := e.State == Failed || e.State == NodeFail
	if !failed || e.At-j.Start >= q.cfg.Requeue.Early {
		if !failed {
			delete(q.early, e.Node)
		}
		return ""
	}
	f := q.early[e.Node]
	if !slices.Contains(f.jobs, j.ID) {
		f.jobs = append(f.jobs, j.ID)
	}
	q.early[e.Node] = f
	if len(f.jobs) < q.cfg.Requeue.EarlyJobs {
		return ""
	}
	delete(q.early, e.Node)
	return e.Node
}
