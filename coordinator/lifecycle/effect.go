package lifecycle

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/certificate"
)

// Kinds of effect. The Slurm kinds are the coordinator's to do, the agent kinds travel in the desired state.
const (
	EffectDrain      = "drain"       // Slurm: args reason
	EffectResume     = "resume"      // Slurm: args reason (the one that must still stand), reason_time
	EffectReason     = "reason"      // Slurm: put our reason back; args reason
	EffectReboot     = "reboot"      // Slurm, or the agent without Slurm
	EffectRequeueJob = "requeue_job" // Slurm: args job, restarts: the run that was on the node
	EffectKillJob    = "kill_job"    // Slurm: args job, restarts
	EffectReleaseJob = "release_job" // Slurm: args job, restarts: a job held by our own prolog exit
	EffectResetGPU   = "reset_gpu"   // agent: args gpus (UUIDs, comma separated)
	EffectScreen     = "screen"      // agent: args level
	EffectEvidence   = "evidence"    // agent: args case
	EffectPowerCycle = "power_cycle" // coordinator: the site's hook
	EffectPage       = "page"        // coordinator: args reason, text
)

// EffectDrill has the agent make up a fault for a drill. No step asks for it: the coordinator does. Args drill (its id), gpu
// (UUID).
const EffectDrill = "drill"

// EffectKinds lists every kind that a step asks for, for tests that must cover them all.
var EffectKinds = []string{EffectDrain, EffectResume, EffectReason, EffectReboot, EffectRequeueJob, EffectKillJob, EffectReleaseJob,
	EffectResetGPU, EffectScreen, EffectEvidence, EffectPowerCycle, EffectPage}

// An Effect is something to do outside etcd. The coordinator gives it an id and its term when it records it. It is a
// no-op when a precondition no longer holds.
type Effect struct {
	Kind     string
	Node     string
	Args     map[string]string
	BootID   string    // must still be the node's; empty: any
	Deadline time.Time // zero: none
}

// A Write goes to etcd in the node's own transaction.
type Write interface{ isWrite() }

type (
	// IssueCertificate asks for a signed certificate; the coordinator fills in serial, key id and signature.
	IssueCertificate struct{ Certificate certificate.Certificate }
	// DeleteCertificate revokes.
	DeleteCertificate struct {
		Node   string
		Serial uint64
		Reason string
	}
	// OpenCase, UpdateCase and CloseCase keep the case's record. The case is the node's at the time of the write.
	OpenCase struct {
		Case     Case
		Findings []checks.Finding
	}
	UpdateCase struct {
		Case     Case
		Findings []checks.Finding // to add
	}
	CloseCase struct {
		ID      string
		Outcome string
	}
	// Spend charges the guard.
	Spend struct {
		Node, Leaf, Reason string
		Step               string // suspend, drain, refuse, screen, kill
		At                 time.Time
		Hard               bool // a hard fault's revocation: counted, never refused
	}
	// Note goes to history only: what would have been done, or why nothing was.
	Note struct{ Text string }
)

func (IssueCertificate) isWrite()  {}
func (DeleteCertificate) isWrite() {}
func (OpenCase) isWrite()          {}
func (UpdateCase) isWrite()        {}
func (CloseCase) isWrite()         {}
func (Spend) isWrite()             {}
func (Note) isWrite()              {}

// Inputs are the values Step needs beside the node and the event.
type Inputs struct {
	Policy policy.Policy
	Guard  Headroom
	CaseID string // the id a new case would get
	Slurm  bool   // jobs run under Slurm; false: only the built-in scheduler
}

// Headroom says whether the guard has room for a step that takes capacity. Package guard's Books has it.
type Headroom interface {
	// Room reports whether n may be taken by step for reason at t; if not, why, in words with numbers.
	Room(n, leaf, reason, step string, t time.Time) (ok bool, why string)
}
