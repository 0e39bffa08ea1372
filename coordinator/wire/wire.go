// Package wire holds the messages between agents, the control plane and its clients. All are JSON; a field is added,
// never renamed or given another meaning. Only data: no behaviour beyond encoding.
package wire

import (
	"encoding/json"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/certificate"
)

// Paths of the HTTP API, version 1.
const (
	PathEnroll    = "/v1/enroll"          // POST Enroll → Enrolled; the only path that needs no client certificate
	PathStream    = "/v1/agent/stream"    // GET → one Desired a line, whole after each connect; 421 Redirect from a follower
	PathHeartbeat = "/v1/agent/heartbeat" // POST Heartbeat → 204
	PathReports   = "/v1/agent/reports"   // POST checks.Report → ReportAnswer, once the state change is durable
	PathPermit    = "/v1/agent/permit"    // POST PermitAsk → PermitAnswer, once our drain stands in Slurm, or refused
	PathEffects   = "/v1/agent/effects"   // POST EffectResult → 204
	PathFleet     = "/v1/fleet"           // GET → Fleet
	PathNodes     = "/v1/nodes"           // GET ?names=HOSTLIST → []Node; GET /{node} → Node; GET /{node}/history → []HistoryEntry; GET /{node}/explain → Explanation; POST /{node}/drain|resume|retire|hold|unhold|rma|repaired NodeVerb → Node
	PathEnrolment = "/v1/enrolments"      // POST EnrolAsk → []EnrolToken
	PathGuard     = "/v1/guard"           // GET → Guard; POST /freeze|/thaw|/reset GuardVerb → Guard
	PathCases     = "/v1/cases"           // GET ?open=true → []Case; GET /{id} → Case; POST /{id}/take|give|note|extend|close CaseVerb → Case
	PathKeep      = "/v1/agent/evidence"  // PUT /{sha256}?case=ID&name=NAME with the file as body → EvidenceKept, once it is on disk
	PathEvidence  = "/v1/evidence"        // GET /{sha256} → the file
	PathRMA       = "/v1/rma"             // GET ?open=true → []rma.Ticket; GET /{id} → rma.Ticket; POST /{id} TicketVerb → rma.Ticket
	PathParts     = "/v1/parts"           // GET ?serials=A,B → []rma.Part
	PathLemons    = "/v1/lemons"          // GET → []rma.Lemon
	PathKeys      = "/v1/keys"            // GET → Keys; POST /rotate GuardVerb → Keys
	PathPeer      = "/v1/peer/evidence"   // PUT, GET and HEAD /{sha256}, among control hosts
	PathCerts     = "/v1/certificates"    // GET → []certificate.Certificate; GET /{node} → certificate.Certificate
	PathPolicy    = "/v1/policy"          // GET → policy.Policy; PUT policy.Policy → policy.Policy with its new version, in force everywhere
	PathRollout   = "/v1/policy/rollout"  // GET → Rollout, with no policy when none is on; POST RolloutAsk → Rollout; POST /promote|/withdraw RolloutVerb → policy.Policy in force
	PathLearned   = "/v1/policy/learned"  // GET → []policy.Learned
	PathEvents    = "/v1/events"          // GET ?after=CURSOR&follow=true, or ?last=N&follow=true → one HistoryEntry a line
	PathOperators = "/v1/operators"       // POST OperatorAsk → Enrolled
	PathDrill     = "/v1/drill"           // GET → Drill, the one under way or the last; POST DrillAsk → Drill
	PathAudit     = "/v1/audit"           // GET → Audit: whether the history that is stored is what was written
)

// IdempotencyKey is the header of a write that may be sent again and is done once. The same key with the same request is
// answered with how what was written stands now, and RepeatedHeader says "true"; with another request it is refused, 422.
const (
	IdempotencyKey = "Idempotency-Key"
	RepeatedHeader = "Idempotency-Repeated"
)

// ContinueHeader carries what to say as continue to get the next page of a list. The last page has none.
const ContinueHeader = "Assay-Continue"

// A Heartbeat says the agent lives. It stays in memory: nothing is written for it.
type Heartbeat struct {
	Node           string   `json:"node"`
	BootID         string   `json:"boot_id"`
	Driver         string   `json:"driver,omitempty"`
	CertSerial     uint64   `json:"cert_serial,omitempty"` // the certificate the agent holds; 0 if none
	PolicyVersion  int      `json:"policy_version"`
	JobsOnNode     []string `json:"jobs,omitempty"`     // ids whose prolog ran and whose epilog has not
	Stopping       bool     `json:"stopping,omitempty"` // an announced stop: its silence is not a fault
	Unsent         int      `json:"unsent,omitempty"`   // reports in the spool
	AgentVersion   string   `json:"agent_version,omitempty"`
	SnapshotAgeSec float64  `json:"snapshot_age_seconds,omitempty"`
}

// Desired is what the control plane wants an agent to hold and do, whole. The newest version wins.
type Desired struct {
	Version     uint64              `json:"version"` // only rises for a node, over all leaders
	Term        int64               `json:"term"`    // the leader's; agents refuse a lower one
	Node        string              `json:"node"`
	State       string              `json:"state"` // lifecycle state, for the hook's decision and for people
	Marks       []string            `json:"marks,omitempty"`
	Managed     bool                `json:"managed"` // false: hooks exit 0, this node is not ours
	Certificate *GrantedCertificate `json:"certificate,omitempty"`
	Policy      policy.Policy       `json:"policy"`
	Learned     policy.Set          `json:"learned,omitzero"`   // what most nodes of this product show; holds below the policy
	Keys        map[string][]byte   `json:"keys"`               // ed25519 public keys that certificates may be signed with, by id
	Expected    *checks.Inventory   `json:"expected,omitempty"` // hardware seen at enrolment: what inventory compares with
	Effects     []Effect            `json:"effects,omitempty"`  // in order; the agent skips ids it knows
	Gangs       []GangOrder         `json:"gangs,omitempty"`    // every launch that is not over; one that is missing is
	Control     []string            `json:"control,omitempty"`  // URLs of all control hosts, as the leader knows them: some may have joined since the node was enrolled
}

// UnmarshalJSON reads a desired state of this or another version of assay: see policy.Read.
func (d *Desired) UnmarshalJSON(b []byte) error {
	type plain Desired
	x := struct {
		*plain
		Policy json.RawMessage `json:"policy"`
	}{plain: (*plain)(d)}
	if err := json.Unmarshal(b, &x); err != nil {
		return err
	}
	if x.Policy == nil {
		return nil
	}
	var err error
	d.Policy, err = policy.Read(x.Policy)
	return err
}

// A GrantedCertificate is a certificate with what is left of it, measured by the control plane when it was sent.
type GrantedCertificate struct {
	certificate.Certificate
	RemainingSeconds      float64 `json:"remaining_seconds"`
	GraceRemainingSeconds float64 `json:"grace_remaining_seconds"`
	Suspended             bool    `json:"suspended,omitempty"`
}

// An Effect is one thing to be done outside etcd, with what must still hold for it to be done.
type Effect struct {
	ID       string            `json:"id"` // unique for ever; a carrier that knows it does nothing more
	Node     string            `json:"node"`
	Kind     string            `json:"kind"` // one of the Effect* constants of package lifecycle
	Term     int64             `json:"term"`
	Args     map[string]string `json:"args,omitempty"`
	BootID   string            `json:"boot_id,omitempty"` // must be the node's
	Created  time.Time         `json:"created"`
	Deadline time.Time         `json:"deadline,omitzero"`
}

// An EffectResult is how an effect went on the agent.
type EffectResult struct {
	ID      string            `json:"id"`
	Node    string            `json:"node"`
	BootID  string            `json:"boot_id"`
	Outcome string            `json:"outcome"` // done, failed, skipped (its precondition no longer held)
	Detail  string            `json:"detail,omitempty"`
	Refs    map[string]string `json:"refs,omitempty"` // evidence: name to sha256
}

// A ReportAnswer says the report is durable, or was known already.
type ReportAnswer struct {
	ID        string `json:"id"`
	Duplicate bool   `json:"duplicate,omitempty"`
	State     string `json:"state"` // the node's after the report
}

// A PermitAsk asks leave to exit 1 from a prolog. It carries the report that is the reason.
type PermitAsk struct {
	Node   string        `json:"node"`
	BootID string        `json:"boot_id"`
	Job    checks.Job    `json:"job"`
	Report checks.Report `json:"report"`
	OwnGPU bool          `json:"own_gpu,omitempty"` // one of the job's own GPUs is missing or lost: it could not run; counted, never refused
}

// A PermitAnswer grants or refuses. A grant means our drain already stands in Slurm.
type PermitAnswer struct {
	Granted bool   `json:"granted"`
	Reason  string `json:"reason"` // our drain reason, or why refused: "held_back: fleet budget 1 of 1 an hour"
	Case    string `json:"case,omitempty"`
}

// Enroll turns a one-time token and a certificate request into a node's identity.
type Enroll struct {
	Node   string `json:"node"`
	Secret string `json:"secret"` // from the token
	CSR    []byte `json:"csr"`    // PEM
}

// Enrolled is the identity: PEM certificate and the authority it chains to.
type Enrolled struct {
	Certificate []byte   `json:"certificate"`
	CA          []byte   `json:"ca"`
	URLs        []string `json:"urls"`
}

// An EnrolAsk asks for tokens.
type EnrolAsk struct {
	Nodes []string `json:"nodes"`
	Adopt bool     `json:"adopt,omitempty"` // a live node: a passing prolog certifies it without intake
	TTL   string   `json:"ttl,omitempty"`   // default 1h
	Leaf  string   `json:"leaf,omitempty"`  // the leaf switch it hangs under, if Slurm does not say
}

// An EnrolToken is printed once and works once.
type EnrolToken struct {
	Node    string    `json:"node"`
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

// A Node is one node as the control plane sees it.
type Node struct {
	Name        string                   `json:"name"`
	State       string                   `json:"state"`
	Since       time.Time                `json:"since"`
	Marks       []string                 `json:"marks,omitempty"`
	Holds       []Hold                   `json:"holds,omitempty"`
	Lost        bool                     `json:"lost,omitempty"`
	Reasons     []string                 `json:"reasons,omitempty"`
	Observed    []string                 `json:"observed,omitempty"` // faults of this boot that policy has only observed: cause, subject, action
	Case        string                   `json:"case,omitempty"`
	Certificate *certificate.Certificate `json:"certificate,omitempty"`
	Suspended   bool                     `json:"suspended,omitempty"`
	BootID      string                   `json:"boot_id,omitempty"`
	Driver      string                   `json:"driver,omitempty"`
	GPUs        int                      `json:"gpus"`
	Product     string                   `json:"product,omitempty"` // of most of its GPUs, as the driver names it
	Leaf        string                   `json:"leaf,omitempty"`
	Slurm       *SlurmNode               `json:"slurm,omitempty"`
	Deadline    time.Time                `json:"deadline,omitzero"`
	Owner       string                   `json:"owner,omitempty"`
	Effects     []Effect                 `json:"effects,omitempty"` // pending
	LastSeen    time.Time                `json:"last_seen,omitzero"`
}

// A Hold keeps a node out on somebody's word.
type Hold struct {
	Owner   string    `json:"owner"`
	Reason  string    `json:"reason"`
	Expires time.Time `json:"expires,omitzero"` // zero: until removed
}

// A SlurmNode is one node as scontrol shows it.
type SlurmNode struct {
	State      string    `json:"state"` // base state and flags, as IDLE+DRAIN
	Reason     string    `json:"reason,omitempty"`
	ReasonUser string    `json:"reason_user,omitempty"`
	ReasonTime time.Time `json:"reason_time,omitzero"`
	Jobs       []string  `json:"jobs,omitempty"`
}

// A HistoryEntry is one transition or decision.
type HistoryEntry struct {
	Cursor string    `json:"cursor"` // opaque, orders entries
	At     time.Time `json:"at"`
	Node   string    `json:"node,omitempty"`
	Event  string    `json:"event"` // in the form of the state machine's test files: "hard_fault check=xid code=79 …"
	From   string    `json:"from,omitempty"`
	To     string    `json:"to,omitempty"`
	Case   string    `json:"case,omitempty"`
	By     string    `json:"by"`               // "assay", "agent", "slurm", or a person's name
	Detail []string  `json:"detail,omitempty"` // writes and effects, one a line

	Prev string `json:"prev,omitempty"` // Hash of the entry before
	Hash string `json:"hash,omitempty"` // over Prev and all of the above; see Chained
}

// A Case is one quarantine from first finding to resume.
type Case struct {
	ID       string            `json:"id"` // Q-7F3K
	Node     string            `json:"node"`
	Opened   time.Time         `json:"opened"`
	Closed   time.Time         `json:"closed,omitzero"`
	Outcome  string            `json:"outcome,omitempty"`
	Cause    string            `json:"cause"` // check and code, as "xid 79"
	Part     string            `json:"part"`  // Subject.Key of the suspected part
	Action   checks.Action     `json:"action"`
	Level    checks.Level      `json:"level"` // a certificate this deep, or deeper, ends it
	Owner    string            `json:"owner"`
	Next     string            `json:"next"` // what happens next, for a person
	Deadline time.Time         `json:"deadline"`
	Attempts []string          `json:"attempts,omitempty"` // rungs taken, as "reboot 2026-11-29T20:11:03Z done"
	Findings []checks.Finding  `json:"findings"`
	Evidence map[string]string `json:"evidence,omitempty"`    // name to sha256
	Gathered string            `json:"gathered,omitempty"`    // how far the evidence is: collecting, complete, partial (the deadline cut it), none
	OnNode   []string          `json:"on_node,omitempty"`     // names of evidence that this control host has not: it is on the node, below its state directory
	Before   []string          `json:"jobs_before,omitempty"` // jobs that were on the node from the first finding until it was empty
	After    []string          `json:"jobs_after,omitempty"`  // the first jobs on it after the case
	Timeline []HistoryEntry    `json:"timeline,omitempty"`    // stored with the case when it closes; until then taken from history
}

// An Explanation answers why a node is where it is, in one screen.
type Explanation struct {
	Node     Node           `json:"node"`
	Case     *Case          `json:"case,omitempty"`
	Why      []string       `json:"why"`  // sentences, most decisive first
	Next     string         `json:"next"` // what happens next and when
	History  []HistoryEntry `json:"history"`
	HookSays string         `json:"hook_says"` // what a prolog on it would answer now
}

// A Fleet is the whole fleet in numbers.
type Fleet struct {
	Nodes     int            `json:"nodes"`
	GPUs      int            `json:"gpus"`
	ByState   map[string]int `json:"by_state"`
	Lost      int            `json:"lost"`
	HeldBack  int            `json:"held_back"`
	Certified int            `json:"certified"` // holding a certificate valid now
	OpenCases int            `json:"open_cases"`
	Mode      string         `json:"mode"`
	Frozen    bool           `json:"frozen"`
	Leader    string         `json:"leader"`
	Term      int64          `json:"term"`
	Attention []Node         `json:"attention"` // those not certified and well, worst first
}

// A NodeVerb is an operator's order on one node.
type NodeVerb struct {
	Reason     string    `json:"reason"`
	AcceptRisk string    `json:"accept_risk,omitempty"`
	Until      time.Time `json:"until,omitzero"`  // hold: when it ends by itself; zero: until removed
	Owner      string    `json:"owner,omitempty"` // unhold: whose hold to remove; empty: the asker's own
}

// An OperatorAsk asks for a person's client certificate. The private key stays with the asker.
type OperatorAsk struct {
	Name string `json:"name"`
	Role string `json:"role,omitempty"` // viewer, user, operator or admin; default operator
	CSR  []byte `json:"csr"`            // PEM
	TTL  string `json:"ttl,omitempty"`  // default 720h
}

// A GuardVerb freezes or thaws.
type GuardVerb struct {
	Reason     string `json:"reason"`
	AcceptRisk string `json:"accept_risk,omitempty"` // reset: RiskUnheard
}

// RiskUnheard is the risk of ending a restore's observe mode although nodes have not reported since.
const RiskUnheard = "unheard"

// A RolloutAsk puts a policy in force on a share of the nodes first.
type RolloutAsk struct {
	Policy policy.Policy   `json:"policy"`
	Share  policy.Share    `json:"share"`
	After  policy.Duration `json:"after,omitzero"` // then it is promoted by itself; 0: when somebody says so
	Reason string          `json:"reason,omitempty"`
}

// A Rollout is a policy that holds on a share of the nodes. Which nodes these are goes by their names and its version.
type Rollout struct {
	Policy  *policy.Policy `json:"policy,omitempty"` // nil: none is on
	Share   policy.Share   `json:"share,omitempty"`
	By      string         `json:"by,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Since   time.Time      `json:"since,omitzero"`
	Promote time.Time      `json:"promote,omitzero"` // when it is promoted by itself; zero: when somebody says so
	Nodes   []string       `json:"nodes,omitempty"`  // enrolled nodes in the share
	Taken   []string       `json:"taken,omitempty"`  // of these, those whose agent has said that it holds it
}

// A RolloutVerb promotes or withdraws a rollout.
type RolloutVerb struct {
	Version int    `json:"version"` // that is meant; another one is refused
	Reason  string `json:"reason,omitempty"`
}

// Guard is what the guard holds.
type Guard struct {
	Frozen      bool      `json:"frozen"`
	FrozenBy    string    `json:"frozen_by,omitempty"`
	FrozenAt    time.Time `json:"frozen_at,omitzero"`
	FrozenWhy   string    `json:"frozen_why,omitempty"`
	DryRun      bool      `json:"dry_run,omitempty"` // nothing is taken; waits say what would be
	Schedulable int       `json:"schedulable"`
	Budgets     []Budget  `json:"budgets"`
	Storms      []string  `json:"storms,omitempty"`
	HeldBack    []string  `json:"held_back,omitempty"` // nodes
	HardHour    int       `json:"hard_faults_hour"`

	Restored time.Time `json:"restored,omitzero"` // a restore from a backup holds the policy at observe since then
	Waits    []Waiting `json:"waits,omitempty"`   // what is held back and why, in the order in which room is given
	Trips    []string  `json:"trips,omitempty"`   // the last storms, freezes and thaws, oldest first
	Permits  int       `json:"refused_jobs"`      // prolog exits permitted that are still in the books
}

// A Waiting is one node that the guard holds back.
type Waiting struct {
	Node  string    `json:"node"`
	State string    `json:"state"`
	Case  string    `json:"case,omitempty"`
	Step  string    `json:"step"` // what is due: suspend, drain
	Hard  bool      `json:"hard,omitempty"`
	Cause string    `json:"cause,omitempty"`
	Since time.Time `json:"since"`
	Would bool      `json:"would,omitempty"` // in a dry run: the step would be done now
	Why   string    `json:"why"`             // which budget, freeze or storm refuses it now, with numbers; or that it is next
}

// A Budget is one window's room.
type Budget struct {
	Scope string    `json:"scope"` // "fleet hour", "fleet day", "leaf s1 hour", "reason rowremap hour"
	Spent int       `json:"spent"`
	Limit int       `json:"limit"`
	Until time.Time `json:"until,omitzero"` // when the oldest spending leaves the window
}

// A Problem is the body of every error answer (RFC 9457, application/problem+json).
type Problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Hint   string `json:"hint,omitempty"`
	Leader string `json:"leader,omitempty"` // with 421: the leader's URL
}
