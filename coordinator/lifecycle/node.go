// Package lifecycle is the state machine of one node: from an event to the node after it, what to write with it, and
// what to do outside. It is pure; the coordinator carries its answers out.
package lifecycle

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/certificate"
)

// A State is where a node stands. Lost, holds and marks stand beside it, never in its place.
type State string

const (
	Enrolled    State = "enrolled"
	Certified   State = "certified"
	Screening   State = "screening"
	Suspect     State = "suspect"
	Withheld    State = "withheld"
	Draining    State = "draining"
	Quarantined State = "quarantined"
	Remediating State = "remediating"
	RMA         State = "rma"
	Retired     State = "retired"
)

// Marks.
const (
	MarkLapsed     = "lapsed"     // certificate expired under a job
	MarkOverridden = "overridden" // a person resumed it in Slurm twice
	MarkHeldBack   = "held_back"  // a step is due, the guard has no room
	MarkAdopted    = "adopted"    // certified without intake
	MarkSuspicious = "suspicious" // a retest was clean after a soft fault
)

// Rungs of the ladder, in order.
const (
	RungScreen     = "screen"
	RungReset      = "reset_gpu"
	RungReboot     = "reboot"
	RungPowerCycle = "power_cycle"
	RungPerson     = "person"
)

// A Node is everything the state machine knows of one node. It is stored whole, as JSON, under nodes/NAME.
type Node struct {
	Name  string    `json:"name"`
	State State     `json:"state"`
	Since time.Time `json:"since"`
	Leaf  string    `json:"leaf,omitempty"`

	Marks   map[string]time.Time `json:"marks,omitempty"` // mark to when it ends; zero: until cleared
	Holds   []Hold               `json:"holds,omitempty"`
	Lost    bool                 `json:"lost,omitempty"`
	Adopt   bool                 `json:"adopt,omitempty"` // enrolled with --adopt: a passing prolog certifies
	Reasons []string             `json:"reasons,omitempty"`

	BootID    string           `json:"boot_id,omitempty"`
	Driver    string           `json:"driver,omitempty"`
	Inventory checks.Inventory `json:"inventory"` // as last reported
	Expected  checks.Inventory `json:"expected"`  // as accepted at enrolment or after a repair

	Certificate *certificate.Certificate `json:"certificate,omitempty"` // nil: none valid
	Suspended   bool                     `json:"suspended,omitempty"`
	LastSerial  uint64                   `json:"last_serial,omitempty"` // highest serial ever granted

	Case           *Case       `json:"case,omitempty"` // the open one
	Deadline       time.Time   `json:"deadline,omitzero"`
	Tries          int         `json:"tries,omitempty"`           // screens that ended Unknown in a row
	Screen         string      `json:"screen,omitempty"`          // effect id of the screen under way
	DrainedByUs    bool        `json:"drained_by_us,omitempty"`   // our record, never the reason text, says who drained
	Jobs           []JobRef    `json:"jobs,omitempty"`            // on it now, as Slurm or the agent said last
	Reboots        []time.Time `json:"reboots,omitempty"`         // ours, within a day
	ForeignResumes int         `json:"foreign_resumes,omitempty"` // within the open case
	Past           []PastCause `json:"past,omitempty"`            // closed causes within the repeat window
	Version        uint64      `json:"version"`                   // counts changes; drives Desired.Version

	Want          checks.Level `json:"want,omitempty"`           // the screen under way, or due when the node is next idle
	Demand        checks.Level `json:"demand,omitempty"`         // level that our resume still to be done rests on
	DrainReason   string       `json:"drain_reason,omitempty"`   // what we last wrote in Slurm
	DrainPending  bool         `json:"drain_pending,omitempty"`  // our drain is ordered and not yet reported done
	ResumePending bool         `json:"resume_pending,omitempty"` // the same for our resume
	ResumeAfter   time.Time    `json:"resume_after,omitzero"`    // a resume failed: not ordered again before this
	RedrainAfter  time.Time    `json:"redrain_after,omitzero"`   // a drain failed: ordered again then, if the node must still be out
	Rewriting     string       `json:"rewriting,omitempty"`      // Slurm's reason that ours is replacing now
	PastBoots     []string     `json:"past_boots,omitempty"`     // boots before this one, oldest first: what they say is old news
	Observed      []string     `json:"observed,omitempty"`       // faults of this boot already noted in observe mode
}

// A Hold keeps a node out on somebody's word.
type Hold struct {
	Owner   string    `json:"owner"`
	Reason  string    `json:"reason"`
	Expires time.Time `json:"expires,omitzero"`

	Drain     bool `json:"drain,omitempty"`     // it stands for this user's drain in Slurm and ends with it
	Overwrote bool `json:"overwrote,omitempty"` // the drain was ours until he changed its reason
}

// A JobRef is a job on a node.
type JobRef struct {
	ID       string `json:"id"`
	Nodes    int    `json:"nodes,omitempty"`    // of the whole job
	Restarts int    `json:"restarts,omitempty"` // times Slurm has requeued it: which run of the job this is
}

// A PastCause is why a node was out before.
type PastCause struct {
	Cause  string    `json:"cause"`
	Part   string    `json:"part"`
	Rung   string    `json:"rung"` // the last taken
	Closed time.Time `json:"closed"`
}

// A Case is one quarantine, as the machine needs it. Findings, evidence and timeline are kept beside it under cases/ID.
type Case struct {
	ID       string        `json:"id"`
	Cause    string        `json:"cause"` // "xid 79"
	Part     string        `json:"part"`
	Action   checks.Action `json:"action"` // severest so far
	Level    checks.Level  `json:"level"`  // what a certificate must reach to end it
	Hard     bool          `json:"hard"`
	Owner    string        `json:"owner"` // "assay" until a person must act, then who or "on-call"
	Next     string        `json:"next"`
	Opened   time.Time     `json:"opened"`
	Rung     string        `json:"rung,omitempty"`     // the one under way or last taken
	Rungs    []string      `json:"rungs,omitempty"`    // taken, in order
	Evidence string        `json:"evidence,omitempty"` // "", "collecting", "complete", "partial"
	Sources  []string      `json:"sources,omitempty"`  // checks that found it independently
	GPUs     []string      `json:"gpus,omitempty"`     // UUIDs suspected

	Faults     []string `json:"faults,omitempty"`     // cause and part of each fault known: the same again is no news
	Need       string   `json:"need,omitempty"`       // the deepest first rung that any of its faults asks for
	Due        string   `json:"due,omitempty"`        // the rung to take when nothing stands in its way
	Out        bool     `json:"out,omitempty"`        // the node's capacity was taken for it
	Planned    bool     `json:"planned,omitempty"`    // nothing failed: a reset is due when the node is empty
	Unkillable bool     `json:"unkillable,omitempty"` // a job's processes cannot be killed: do not wait for it to end
}

// Marked reports whether the node carries the mark at time t.
func (n Node) Marked(mark string, t time.Time) bool {
	until, ok := n.Marks[mark]
	return ok && (until.IsZero() || t.Before(until))
}
