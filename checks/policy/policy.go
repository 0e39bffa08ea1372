// Package policy holds the thresholds, modes, budgets and deadlines that a fleet owner sets. One policy is in force
// at a time; the control plane versions it and pushes it to the agents. The zero Policy is not valid: start from Default.
package policy

import "time"

// A Mode says how far a check's findings may go.
type Mode string

const (
	Off     Mode = "off"     // the check does not run
	Observe Mode = "observe" // it runs and says what would have been done; nothing acts on it
	Act     Mode = "act"
)

// A Policy is everything a fleet owner may set. The yaml names are the file's; the json names are the wire's.
type Policy struct {
	Version int              `json:"version" yaml:"-"`     // given by the control plane, only rises; 0 is the built-in default
	Mode    Mode             `json:"mode" yaml:"mode"`     // the whole fleet's; observe after a fresh install
	Checks  map[string]Check `json:"checks" yaml:"checks"` // by catalog id; a check not named acts with its defaults

	Inventory Inventory `json:"inventory" yaml:"inventory"`
	ECC       ECC       `json:"ecc" yaml:"ecc"`
	RowRemap  RowRemap  `json:"row_remap" yaml:"row_remap"`
	XID       XID       `json:"xid" yaml:"xid"`

	Agent       Agent       `json:"agent" yaml:"agent"`
	Hooks       Hooks       `json:"hooks" yaml:"hooks"`
	Certificate Certificate `json:"certificate" yaml:"certificate"`
	Guard       Guard       `json:"guard" yaml:"guard"`
	Lifecycle   Lifecycle   `json:"lifecycle" yaml:"lifecycle"`
}

// A Check is what may be set for any check.
type Check struct {
	Mode Mode `json:"mode" yaml:"mode"` // empty: the fleet's mode
}

// Inventory holds what hardware a node should show.
type Inventory struct {
	Count  int    `json:"count" yaml:"count"`   // GPUs a node should have; 0: as many as were seen at enrolment
	Name   string `json:"name" yaml:"name"`     // product name every GPU should have; empty: any
	Driver string `json:"driver" yaml:"driver"` // driver version wanted; empty: any
}

// ECC holds the limits of package ecc.
type ECC struct {
	MaxVolatileUncorrected uint64 `json:"max_volatile_uncorrected" yaml:"max_volatile_uncorrected"` // more is a soft Fail, reset_gpu
	MaxVolatileCorrected   uint64 `json:"max_volatile_corrected" yaml:"max_volatile_corrected"`     // more is a soft Fail, drain
	RequireEnabled         bool   `json:"require_enabled" yaml:"require_enabled"`                   // ECC off is a soft Fail, fix_config
}

// RowRemap holds the limits of package rowremap.
type RowRemap struct {
	MaxCorrectable int `json:"max_correctable" yaml:"max_correctable"` // rows; more is a soft Fail (10: Anubis, ATC'24: 83 % of such nodes regress)
}

// XID holds the rules of package xid that a site may change.
type XID struct {
	Actions map[int]string `json:"actions,omitempty" yaml:"actions"` // by XID: the action instead of the table's
}

// Agent holds the agent's intervals and deadlines.
type Agent struct {
	Interval      Duration `json:"interval" yaml:"interval"`             // between background cycles
	Heartbeat     Duration `json:"heartbeat" yaml:"heartbeat"`           // between heartbeats
	CallDeadline  Duration `json:"call_deadline" yaml:"call_deadline"`   // for one GPU's calls together
	InitDeadline  Duration `json:"init_deadline" yaml:"init_deadline"`   // for nvmlInit
	HungChildren  int      `json:"hung_children" yaml:"hung_children"`   // fresh children running in which a call must hang to be a Fail
	StuckChild    Duration `json:"stuck_child" yaml:"stuck_child"`       // a child alive this long after SIGKILL is a Fail
	SpoolBytes    int64    `json:"spool_bytes" yaml:"spool_bytes"`       // most that unsent reports may take on disk
	IncidentGap   Duration `json:"incident_gap" yaml:"incident_gap"`     // findings this close may share a root cause
	IncidentCause Duration `json:"incident_cause" yaml:"incident_cause"` // a channel teardown this long after its cause still belongs to it
}

// Hooks holds what prolog and epilog may do.
type Hooks struct {
	Budget       Duration `json:"budget" yaml:"budget"`               // the quick suite's, of a hard 20 s
	PermitWait   Duration `json:"permit_wait" yaml:"permit_wait"`     // for an answer to exit 1; without one only a hard fault exits 1
	OfflineMax   Duration `json:"offline_max" yaml:"offline_max"`     // how long a certificate alone passes hooks without the control plane
	SnapshotAge  Duration `json:"snapshot_age" yaml:"snapshot_age"`   // oldest clean snapshot the fast path accepts
	FailMode     string   `json:"fail_mode" yaml:"fail_mode"`         // "open": Unknown passes; "closed": Unknown asks for a permit to exit 1
	ReleaseTries int      `json:"release_tries" yaml:"release_tries"` // times a job held by our own exit is released
}

// Certificate holds lifetimes by level and the extra time that hooks, never placement, still accept.
type Certificate struct {
	QuickMIG Duration `json:"quick_mig" yaml:"quick_mig"`
	Quick    Duration `json:"quick" yaml:"quick"`
	Standard Duration `json:"standard" yaml:"standard"`
	Soak     Duration `json:"soak" yaml:"soak"`
	Intake   Duration `json:"intake" yaml:"intake"`
	Grace    Duration `json:"grace" yaml:"grace"`
}

// Guard holds the budgets for automatic steps that take capacity. A budget is
// max(1, min(absolute, share × schedulable GPU nodes at the window's start)).
type Guard struct {
	FleetHourShare float64  `json:"fleet_hour_share" yaml:"fleet_hour_share"`
	FleetDayShare  float64  `json:"fleet_day_share" yaml:"fleet_day_share"`
	FleetHourMax   int      `json:"fleet_hour_max" yaml:"fleet_hour_max"`       // absolute, nodes an hour
	LeafHourShare  float64  `json:"leaf_hour_share" yaml:"leaf_hour_share"`     // of the nodes under one leaf switch
	ReasonShare    float64  `json:"reason_hour_share" yaml:"reason_hour_share"` // of the fleet, for one reason
	StormNodes     int      `json:"storm_nodes" yaml:"storm_nodes"`             // at least this many nodes of different chassis …
	StormShare     float64  `json:"storm_share" yaml:"storm_share"`             // … and more than this share of those that could show it …
	StormWindow    Duration `json:"storm_window" yaml:"storm_window"`           // … within this time is a storm: stop and page
	HardPageShare  float64  `json:"hard_page_share" yaml:"hard_page_share"`     // hard faults above this share of nodes an hour page
}

// Lifecycle holds the deadlines and choices of the node state machine.
type Lifecycle struct {
	HeartbeatTimeout Duration `json:"heartbeat_timeout" yaml:"heartbeat_timeout"`
	LostShare        float64  `json:"lost_share" yaml:"lost_share"` // more than this share and at least LostNodes lost at once is one page and no action
	LostNodes        int      `json:"lost_nodes" yaml:"lost_nodes"`
	RetestWithin     Duration `json:"retest_within" yaml:"retest_within"`   // suspect: without an idle slot for this long after the last job → quarantined
	DrainDeadline    Duration `json:"drain_deadline" yaml:"drain_deadline"` // draining: then DrainJob decides
	DrainJob         string   `json:"drain_job" yaml:"drain_job"`           // one-node jobs at the deadline: "wait", "requeue", "kill"
	DrainGang        string   `json:"drain_gang" yaml:"drain_gang"`         // multi-node jobs at the deadline: "wait" pages; also "requeue", "kill"
	EvidenceDeadline Duration `json:"evidence_deadline" yaml:"evidence_deadline"`
	ResetDeadline    Duration `json:"reset_deadline" yaml:"reset_deadline"`
	RebootDeadline   Duration `json:"reboot_deadline" yaml:"reboot_deadline"`
	ScreenDeadline   Duration `json:"screen_deadline" yaml:"screen_deadline"`
	ScreenTries      int      `json:"screen_tries" yaml:"screen_tries"`   // Unknown this often in a row: case "cannot screen"
	RepeatWindow     Duration `json:"repeat_window" yaml:"repeat_window"` // same cause on the same part within it enters at the next rung
	RebootsPerDay    int      `json:"reboots_per_day" yaml:"reboots_per_day"`
	OverrideFor      Duration `json:"override_for" yaml:"override_for"`
	PersonDeadline   Duration `json:"person_deadline" yaml:"person_deadline"` // a case waiting for a person pages again
	RMAQuiet         Duration `json:"rma_quiet" yaml:"rma_quiet"`             // an RMA without movement pages
	AutoRMA          bool     `json:"auto_rma" yaml:"auto_rma"`               // two checks, independently, on one part that asks for rma open the RMA; false: a person does
	HardCaseLevel    string   `json:"hard_case_level" yaml:"hard_case_level"` // level that ends a case opened by a hard fault
	SoftCaseLevel    string   `json:"soft_case_level" yaml:"soft_case_level"`
	SlurmInterval    Duration `json:"slurm_interval" yaml:"slurm_interval"` // between reads of Slurm's whole fleet
}

// A Duration is a time.Duration that reads and writes as "30s" or "12h". Days may be written as "7d".
type Duration time.Duration

// D is the duration as the time package knows it.
func (d Duration) D() time.Duration { return time.Duration(d) }
