package queue

import "github.com/assay-gpu/assay/scheduler/quota"

// A State is where a job is in its life.
type State int

// The states of a job. The names are Slurm's.
const (
	Pending State = iota
	Running
	Completed
	Failed    // exit status other than 0
	Cancelled // by its user or an admin
	Timeout   // its time limit ended
	NodeFail  // a node under it failed
	Preempted // it made room for another
	Deadline  // it could no longer have ended in time
)

var stateNames = []string{"PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "DEADLINE"}

func (s State) String() string { return stateNames[s] }

// Done reports whether the job will not run again.
func (s State) Done() bool { return s > Running }

// A Job is one gang as the queue knows it. Each task of an array is a Job.
type Job struct {
	ID    int64
	Array int64 // the array's id; 0: none
	Task  int   // index in the array
	// Throttle is how many tasks of the array may run at once (--array=0-99%8); 0: all.
	Throttle int

	Name, User, Account string
	Partition           string
	Partitions          []string `json:",omitempty"` // all that it waits in, where these are several
	QOS                 string

	Nodes         int   // whole gang or nothing
	GPUsPerNode   int   // GPUs on each
	CPUsPerNode   int   //
	MemoryPerNode int64 // MiB
	Limit         int64 // seconds; 0: the partition's default

	Submit   int64 // when it came
	Begin    int64 // --begin: not before
	Deadline int64 // --deadline: must have ended by then; 0: none
	Nice     int   // lowers the priority; negative only for operators
	Site     int   // set by the site, added as it is
	Pinned   uint32

	HeldUser, HeldAdmin bool
	After               Dependencies
	Reservation         string

	Requeue     bool  // may be started again after a failure that is not its own
	RequeueExit []int // exit statuses after which it is started again: the site's RequeueExit

	// What the queue notes.
	State     State
	Accrue    int64 // since when its age counts; 0: not yet
	Start     int64 // of the last run
	End       int64
	Exit      int
	Starts    int   // how often it has been started
	Attempts  int   // starts that failed by no fault of the job
	NotBefore int64 // back-off
	Expedited bool  // a gang that lost a node: first claim on its replacement
	Bad       []Bad // nodes it failed on
	Behind    int64 // the job that pushed it out: it does not come back before that one has started; 0: none
	Why       Reason

	assoc quota.ID
}

// A Bad is a node on which a job failed, and how often.
type Bad struct {
	Node     string
	Failures int
	At       int64 // the last time
}

// Amounts is all that the gang holds while it runs.
func (j *Job) Amounts() quota.Amounts {
	n := int64(j.Nodes)
	return quota.Amounts{n * int64(j.GPUsPerNode), n, n * int64(j.CPUsPerNode), n * j.MemoryPerNode}
}

// perNode is what it holds on one node.
func (j *Job) perNode() quota.Amounts {
	return quota.Amounts{int64(j.GPUsPerNode), 1, int64(j.CPUsPerNode), j.MemoryPerNode}
}
