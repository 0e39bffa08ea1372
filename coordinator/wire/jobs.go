package wire

import (
	"time"

	"github.com/assay-gpu/assay/scheduler"
)

// Paths of the built-in scheduler.
const (
	PathGangs = "/v1/agent/gangs" // POST GangStatus → 204
	PathJobs  = "/v1/jobs"        // GET ?all=true → []Job; POST JobAsk → Job; POST /plan JobAsk → JobPlan; POST /batch Batch → []BatchAnswer; GET /{id} → Job; POST /{id}/cancel|hold|release JobVerb → Job; GET /{id}/logs → JobLogs. An id is a job's, an array's, or ARRAY_TASK
)

// A JobAsk is what a person submits: a script and what it needs.
type JobAsk struct {
	Name      string         `json:"name"`
	Script    string         `json:"script"`         // run once for each rank
	Dir       string         `json:"dir,omitempty"`  // working directory on the nodes; empty: /
	Output    string         `json:"output"`         // file on each node, %j the job, %x its name, %t the rank; empty: none, the control plane keeps the end
	Env       []string       `json:"env,omitempty"`  // NAME=VALUE
	Gang      scheduler.Gang `json:"gang"`           // ID is the control plane's to give
	Partition string         `json:"partition"`      // empty: batch
	Account   string         `json:"account"`        // empty: all
	QOS       string         `json:"qos"`            // empty: normal
	Requeue   bool           `json:"requeue"`        // start it again when a node fails under it
	Begin     time.Time      `json:"begin,omitzero"` // not before
	Hold      bool           `json:"hold,omitempty"`
	Nice      int            `json:"nice,omitempty"`
	After     string         `json:"after,omitempty"` // as sbatch's --dependency: afterok:12,afterany:13

	Deadline    time.Time `json:"deadline,omitzero"`     // must have ended by then
	Reservation string    `json:"reservation,omitempty"` // runs in this one alone
	Array       []int     `json:"array,omitempty"`       // indices of the tasks of an array; nil: a single job
	Throttle    int       `json:"throttle,omitempty"`    // tasks at once; 0: all
}

// A Batch is many jobs submitted at once. Sent again with the same key it submits those that had not been taken.
type Batch struct {
	Key     string     `json:"key"`     // of the submitter's making; lines are known by it
	Scripts []string   `json:"scripts"` // each once
	Env     []string   `json:"env"`     // of those jobs that have none of their own
	Jobs    []BatchJob `json:"jobs"`
}

// BatchMost bounds the jobs of one Batch.
const BatchMost = 1000

// A BatchJob is one of them.
type BatchJob struct {
	Line   int    `json:"line"`   // of the file; each once
	Script int    `json:"script"` // index in Scripts
	Ask    JobAsk `json:"ask"`    // without Script
}

// A BatchAnswer says what became of one.
type BatchAnswer struct {
	Line  int    `json:"line"`
	ID    int64  `json:"id,omitempty"`
	Again bool   `json:"again,omitempty"` // it had been submitted before
	Error string `json:"error,omitempty"`
}

// A Job is one job as the control plane sees it.
type Job struct {
	ID        int64          `json:"id"`
	Name      string         `json:"name"`
	User      string         `json:"user"`
	Partition string         `json:"partition"`
	Account   string         `json:"account"`
	QOS       string         `json:"qos"`
	State     string         `json:"state"`            // PENDING, STARTING, RUNNING, ENDING, or how it ended, in Slurm's words
	Reason    string         `json:"reason,omitempty"` // why it waits, or why it ended, in words with numbers
	Code      string         `json:"code,omitempty"`   // the same as Slurm's word: Resources, Priority, JobHeldUser …
	Gang      scheduler.Gang `json:"gang"`
	Submitted time.Time      `json:"submitted"`
	Planned   time.Time      `json:"planned,omitzero"` // when it is expected to start
	Started   time.Time      `json:"started,omitzero"` // GO of the last launch
	Ended     time.Time      `json:"ended,omitzero"`
	Launch    string         `json:"launch,omitempty"` // the one under way, or the last
	Nodes     string         `json:"nodes,omitempty"`  // hostlist, in rank order
	Exit      int            `json:"exit"`             // of the first rank that did not end well; 128 and more: ended by that signal
	Launches  int            `json:"launches"`         // how often its nodes were reserved

	Array       int64          `json:"array,omitempty"`       // the array it is a task of
	Task        int            `json:"task,omitempty"`        // its index there
	Tasks       map[string]int `json:"tasks,omitempty"`       // of an array itself: its tasks by state
	Throttle    int            `json:"throttle,omitempty"`    // tasks at once
	Begin       time.Time      `json:"begin,omitzero"`        // not before
	Deadline    time.Time      `json:"deadline,omitzero"`     // must have ended by then
	After       string         `json:"after,omitempty"`       // as sbatch's --dependency
	Reservation string         `json:"reservation,omitempty"` //
	Priority    uint32         `json:"priority,omitempty"`    // of a waiting job, as the planner last worked it out
}

// A JobVerb is an order on one job.
type JobVerb struct {
	Reason string `json:"reason,omitempty"`
}

// A JobPlan says where a job would start now, or why it would not.
type JobPlan struct {
	Nodes   string         `json:"nodes,omitempty"`   // hostlist
	Where   []string       `json:"where,omitempty"`   // a line for each leaf: "s1: gpu[001-004]"
	Cost    scheduler.Cost `json:"cost,omitzero"`     // how good the place is
	Refused string         `json:"refused,omitempty"` // a sentence with numbers
	// Question is what was asked, gang and fleet, where the caller wants to keep it.
	Question *scheduler.Question `json:"question,omitempty"`
}

// JobLogs are the ends of what ranks wrote.
type JobLogs struct {
	Job    int64        `json:"job"`
	Launch string       `json:"launch,omitempty"`
	Ranks  []RankOutput `json:"ranks"`
}

// A RankOutput is the end of what one rank wrote to standard output and error.
type RankOutput struct {
	Rank int    `json:"rank"`
	Node string `json:"node"`
	Cut  bool   `json:"cut,omitempty"` // there was more before
	Text string `json:"text"`
}

// Phases of a gang as an agent is told of them.
const (
	GangReserve = "reserve" // check the node again, and say ready or refused
	GangGo      = "go"      // start the ranks
	GangStop    = "stop"    // end what runs, start nothing
)

// A GangOrder is an agent's part of a launch. The same launch comes with each desired state until it is over.
type GangOrder struct {
	Launch     string    `json:"launch"`
	Job        int64     `json:"job"`
	Name       string    `json:"name"`
	Phase      string    `json:"phase"`
	User       string    `json:"user"`
	Script     string    `json:"script"`
	Dir        string    `json:"dir,omitempty"`
	Output     string    `json:"output,omitempty"`
	Env        []string  `json:"env,omitempty"` // the submitter's, then assay's
	Ranks      []RankAsk `json:"ranks"`
	Nodes      int       `json:"nodes"`       // of the gang
	Serial     uint64    `json:"serial"`      // the certificate it was placed on
	LimitSec   float64   `json:"limit"`       // from GO; 0: none
	ReserveSec float64   `json:"reserve"`     // without GO for so long, the reservation is dropped
	Restarts   int       `json:"restarts"`    // launches before this one
	GPUIndices []int     `json:"gpu_indices"` // all that the gang has on the node
}

// A RankAsk is one process to start.
type RankAsk struct {
	Rank  int   `json:"rank"`
	Local int   `json:"local"` // among those of this node
	GPUs  []int `json:"gpus"`  // indices
}

// Phases of a gang as an agent tells of them.
const (
	GangReady   = "ready"
	GangRefused = "refused" // the node failed its check; nothing was started
	GangRunning = "running" // every rank of the node was started
	GangExited  = "exited"  // no process of it is left
)

// A GangStatus is how a launch stands on one node. It is sent again until the control plane has taken it.
type GangStatus struct {
	Launch string       `json:"launch"`
	Node   string       `json:"node"`
	BootID string       `json:"boot_id"`
	Phase  string       `json:"phase"`
	Serial uint64       `json:"serial,omitempty"` // the certificate the agent holds
	Reason string       `json:"reason,omitempty"` // refused: why; exited: what ended it, if not the ranks themselves
	Lost   bool         `json:"lost,omitempty"`   // exited: the node's fault, not the script's
	Exits  []RankExit   `json:"exits,omitempty"`
	Output []RankOutput `json:"output,omitempty"`
}

// A RankExit is how one rank ended.
type RankExit struct {
	Rank int `json:"rank"`
	Code int `json:"code"` // 128 and more: ended by that signal
}
