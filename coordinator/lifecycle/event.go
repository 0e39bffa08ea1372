package lifecycle

import (
	"time"

	"github.com/assay-gpu/assay/checks"
)

// An Event is something that happened to a node. Events carry their time: leader time, never the node's.
type Event interface {
	When() time.Time
	// String writes the event as the state machine's test files do: name, then key=value pairs.
	String() string
}

// At is the time of an event, embedded in each.
type At struct{ Time time.Time }

// When returns the event's leader time.
func (a At) When() time.Time { return a.Time }

// The events. Each names who or what brought it; the coordinator reduces reports, Slurm's state, timers and orders to these.
type (
	// Enrol puts a node under assay's care.
	Enrol struct {
		At
		Adopt bool
		Leaf  string
		By    string
	}
	// Seen carries what the agent says of itself at connect and with each report: boot id, driver, hardware.
	Seen struct {
		At
		Inventory checks.Inventory
	}
	// HardFault revokes first and asks afterwards.
	HardFault struct {
		At
		Finding checks.Finding
		Job     *checks.Job // the job whose prolog found it
		OwnGPU  bool        // that job could not have run: its exit 1 is counted, never refused
	}
	// SoftFault makes a certified node suspect.
	SoftFault struct {
		At
		Finding checks.Finding
		Job     *checks.Job
	}
	// ResetWanted is a pass that asks for a reset when the node is next empty: a pending remap.
	ResetWanted struct {
		At
		Finding checks.Finding
	}
	// Screened is the end of a suite: a prolog's, a retest's, or one an effect asked for.
	Screened struct {
		At
		Screen    string // effect id; empty for a prolog
		Why       checks.Why
		Level     checks.Level
		Verdict   checks.Verdict
		Tested    []string
		NotTested []string
		Suite     string // digest
		Stale     int    // serial of the certificate that the node holds, when that is of another suite
		Inventory checks.Inventory
		Findings  []checks.Finding // the Fails
	}
	// Expired: the certificate's time is up.
	Expired struct{ At }
	// JobsChanged is the node's jobs as Slurm, or without Slurm the agent, shows them.
	JobsChanged struct {
		At
		Jobs []JobRef
	}
	// SlurmDrained: the node is drained in Slurm and not by us. Ours is never reported this way.
	SlurmDrained struct {
		At
		User, Reason string
		BySlurm      bool // one of Slurm's own reasons: a case owned by assay, no hold
	}
	// SlurmResumed: our drain is gone and it was not us.
	SlurmResumed struct {
		At
		User string
	}
	// SlurmReason: our drain stands but somebody changed its reason.
	SlurmReason struct {
		At
		User, Reason string
		BySlurm      bool
	}
	// SlurmUndrained: a foreign drain is gone; the hold of that user ends.
	SlurmUndrained struct {
		At
		User string
	}
	// EffectEnded is how an effect went.
	EffectEnded struct {
		At
		ID, Kind, Outcome, Detail string // Outcome: done, failed, skipped
	}
	// DeadlinePassed: the state's deadline is over.
	DeadlinePassed struct{ At }
	// Silent: no heartbeat within the timeout. Back: one came.
	Silent struct{ At }
	Back   struct{ At }
	// Room: budget has returned to the guard, this held-back node is next.
	Room struct{ At }
	// OrderDrain, OrderResume, OrderCancel, OrderHold, OrderUnhold, OrderRMA, OrderRepaired, OrderRetire and OrderCase are a person's.
	OrderDrain struct {
		At
		By, Reason string
	}
	OrderResume struct {
		At
		By, Reason string
		AcceptRisk string // "no-certificate" resumes without a fresh certificate
	}
	OrderCancel struct {
		At
		By, Reason string
	}
	OrderHold struct {
		At
		By, Reason string
		Until      time.Time
	}
	OrderUnhold struct {
		At
		By, Owner string
	}
	OrderRMA struct {
		At
		By, Reason string
	}
	OrderRepaired struct {
		At
		By, Outcome string // "replaced" or "same part: …"
	}
	OrderRetire struct {
		At
		By, Reason string
	}
	// OrderCase is a person's word on the open case.
	OrderCase struct {
		At
		By, Reason string
		Case, Verb string    // Verb: CaseTake, CaseGive, CaseExtend or CaseClose
		Until      time.Time // extend: the new deadline
	}
)
