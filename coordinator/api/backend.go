// Package api is the control plane's HTTP interface: for agents and operators over HTTP/2 with TLS 1.3 and client
// certificates, and for the operators of the control host over a unix socket.
//
// It decides nothing. It says who asks, bounds what they send, and hands the message to the interfaces below, which
// the coordinator has. Every error answer is a wire.Problem.
package api

import (
	"context"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// A Backend is everything the API asks of the coordinator. All methods may be called by many goroutines at once. An
// error with Status() int becomes an answer with that status, one with Hint() string carries the hint; any other
// error is answered 500 and logged.
type Backend struct {
	Agents     Agents
	Fleet      Fleet
	Operators  Operators
	Enroller   Enroller
	Policies   Policies
	Guarder    Guarder
	History    History
	Leadership Leadership
	Jobs       Jobs
	Rules      Rules

	Casework Casework // nil: cases are shown, no more
	Repairs  Repairs  // nil: there are no tickets
	Keys     Keys     // nil: there is no key to show
	Auditor  Auditor  // nil: refused calls are logged only
	Drills   Drills   // nil: there are none
}

// Agents hears what agents say and tells them what is wanted of them. The node named in each message is the one whose
// certificate the caller showed.
type Agents interface {
	// Heartbeat is called once per node and heartbeat interval; it must cost next to nothing.
	Heartbeat(ctx context.Context, hb wire.Heartbeat) error
	// Report returns once the state change it brings is durable.
	Report(ctx context.Context, r checks.Report) (wire.ReportAnswer, error)
	// Permit returns once our drain stands in Slurm, or the permit is refused.
	Permit(ctx context.Context, ask wire.PermitAsk) (wire.PermitAnswer, error)
	EffectResult(ctx context.Context, r wire.EffectResult) error
	GangStatus(ctx context.Context, s wire.GangStatus) error
	// Desired waits until the node's desired state has a version above after, or ctx ends, and returns it whole. Versions
	// begin at 1. It returns an error when this process no longer leads.
	Desired(ctx context.Context, node string, after uint64) (wire.Desired, error)
}

// Fleet answers operators' questions from memory.
type Fleet interface {
	Fleet(ctx context.Context) (wire.Fleet, error)
	// Nodes returns the named nodes in the order named, or with no names all, sorted. An unknown name is an error with
	// status 404.
	Nodes(ctx context.Context, names []string) ([]wire.Node, error)
	NodeHistory(ctx context.Context, node string) ([]wire.HistoryEntry, error)
	Explain(ctx context.Context, node string) (wire.Explanation, error)
	Cases(ctx context.Context, openOnly bool) ([]wire.Case, error)
	Case(ctx context.Context, id string) (wire.Case, error)
	Certificates(ctx context.Context) ([]certificate.Certificate, error)
	Certificate(ctx context.Context, node string) (certificate.Certificate, error)
}

// A Verb is an operator's order on a node.
type Verb string

const (
	VerbDrain  Verb = "drain"
	VerbResume Verb = "resume" // of a draining node: the drain is cancelled
	VerbHold   Verb = "hold"
	VerbUnhold Verb = "unhold"
	VerbRetire Verb = "retire"
	VerbRMA    Verb = "rma"      // the suspected part goes back to the vendor
	VerbRepair Verb = "repaired" // it is back; the reason is the outcome
)

// Operators carries out what a person orders. By is who: an operator's name, or the OS user on the unix socket.
type Operators interface {
	Order(ctx context.Context, by string, verb Verb, node string, v wire.NodeVerb) (wire.Node, error)
}

// An Enroller makes tokens and turns them, and operators' requests, into identities.
type Enroller interface {
	Tokens(ctx context.Context, by string, ask wire.EnrolAsk) ([]wire.EnrolToken, error)
	Enroll(ctx context.Context, e wire.Enroll) (wire.Enrolled, error)
	IssueOperator(ctx context.Context, by string, ask wire.OperatorAsk) (wire.Enrolled, error)
}

// Policies keeps the policy in force.
type Policies interface {
	Policy(ctx context.Context) (policy.Policy, error)
	// SetPolicy validates p, gives it the next version and puts it in force.
	SetPolicy(ctx context.Context, by string, p policy.Policy) (policy.Policy, error)
	Rollout(ctx context.Context) (wire.Rollout, error)
	// RollOut validates a policy and puts it in force on a share of the nodes.
	RollOut(ctx context.Context, by string, ask wire.RolloutAsk) (wire.Rollout, error)
	// Promote and Withdraw end a rollout; they return the policy in force after it.
	Promote(ctx context.Context, by string, v wire.RolloutVerb) (policy.Policy, error)
	Withdraw(ctx context.Context, by string, v wire.RolloutVerb) (policy.Policy, error)
	Learned(ctx context.Context) ([]policy.Learned, error)
}

// Jobs runs gangs where no other workload manager does.
type Jobs interface {
	SubmitJob(ctx context.Context, by string, ask wire.JobAsk) (wire.Job, error)
	// SubmitJobs takes or refuses each job of a batch by itself. Those of its lines that were taken before are not taken again.
	SubmitJobs(ctx context.Context, by string, b wire.Batch) ([]wire.BatchAnswer, error)
	// FindJob is the id that a text names: a job's, an array's, or ARRAY_TASK.
	FindJob(ctx context.Context, text string) (int64, error)
	// PlanJob says where a job would start now, or why not, with keep the question too. Nothing is kept of it here.
	PlanJob(ctx context.Context, by string, ask wire.JobAsk, keep bool) (wire.JobPlan, error)
	// Jobs lists jobs, oldest first; those that have ended only with all.
	Jobs(ctx context.Context, all bool) ([]wire.Job, error)
	Job(ctx context.Context, id int64) (wire.Job, error)
	// OrderJob carries out cancel, hold, release or requeue.
	OrderJob(ctx context.Context, by, verb string, id int64, v wire.JobVerb) (wire.Job, error)
	JobLogs(ctx context.Context, id int64) (wire.JobLogs, error)
}

// Rules keeps partitions, QOS, accounts, reservations and the weights of priority.
type Rules interface {
	// Rules are those kept; with whole, those too that hold where none were.
	Rules(ctx context.Context, whole bool) (rules.File, error)
	// SetRules keeps each record in place of the one of its name. A file with any fault is refused whole.
	SetRules(ctx context.Context, by string, f rules.File) (rules.File, error)
	// DropRule deletes a record: of kind account, qos, partition or reservation.
	DropRule(ctx context.Context, by, kind, name string) (rules.File, error)
	// Accounts are all accounts, each with its users after it, and how they stand.
	Accounts(ctx context.Context) ([]wire.Account, error)
}

// Guarder shows and stops the guard.
type Guarder interface {
	Guard(ctx context.Context) (wire.Guard, error)
	Freeze(ctx context.Context, by, reason string) (wire.Guard, error)
	Thaw(ctx context.Context, by, reason string) (wire.Guard, error)
	// Lift ends the observe mode that a restore began; unheard: although nodes have not reported since.
	Lift(ctx context.Context, by, reason string, unheard bool) error
}

// History reads transitions and decisions, oldest first.
type History interface {
	// Entries returns at most max entries after the cursor; "" is before the oldest one kept. With wait it blocks until
	// there is one or ctx ends. A cursor older than what is kept is an error with status 410.
	Entries(ctx context.Context, after string, max int, wait bool) ([]wire.HistoryEntry, error)
	// Last returns the newest n entries.
	Last(ctx context.Context, n int) ([]wire.HistoryEntry, error)
}

// An Auditor keeps what no other method would hear of, and proves what is kept.
type Auditor interface {
	// Refused records that a person's call was refused for want of a role. Node is the one it named, or "".
	Refused(ctx context.Context, by string, has, needs authority.Role, call, node string) error
	// Audit reads history as it is stored and follows its chain.
	Audit(ctx context.Context) (wire.Audit, error)
}

// Leadership says who leads. It is asked on every request and must not block.
type Leadership interface {
	// Leader returns the leader's URL ("" when none is known), whether it is this process, and its term.
	Leader() (url string, mine bool, term int64)
}
