package policy

import (
	"time"

	"github.com/assay-gpu/assay/checks"
)

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

func defaultLifecycle() Lifecycle {
	return Lifecycle{
		HeartbeatTimeout: 60 * second, LostShare: 0.05, LostNodes: 3, RetestWithin: 24 * hour, DrainDeadline: 24 * hour, DrainJob: "wait", DrainGang: "wait",
		EvidenceDeadline: 5 * minute, ResetDeadline: 10 * minute, RebootDeadline: 45 * minute, ScreenDeadline: 30 * minute, ScreenTries: 3,
		RepeatWindow: 30 * 24 * hour, RebootsPerDay: 2, OverrideFor: 24 * hour, PersonDeadline: 24 * hour, RMAQuiet: 30 * 24 * hour,
		HardCaseLevel: "standard", SoftCaseLevel: "quick", SlurmInterval: 10 * second,
	}
}

func (v *validator) lifecycle(l Lifecycle) {
	v.within("lifecycle.heartbeat_timeout", l.HeartbeatTimeout, time.Second, time.Hour)
	v.share("lifecycle.lost_share", l.LostShare)
	atLeast(v, "lifecycle.lost_nodes", l.LostNodes, 1)
	oneOf(v, "lifecycle.drain_job", l.DrainJob, "wait", "requeue", "kill")
	oneOf(v, "lifecycle.drain_gang", l.DrainGang, "wait", "requeue", "kill")
	for _, f := range []struct {
		path  string
		d     Duration
		least time.Duration
	}{
		{"lifecycle.retest_within", l.RetestWithin, time.Second}, {"lifecycle.drain_deadline", l.DrainDeadline, time.Second},
		{"lifecycle.evidence_deadline", l.EvidenceDeadline, time.Second}, {"lifecycle.reset_deadline", l.ResetDeadline, time.Second},
		{"lifecycle.reboot_deadline", l.RebootDeadline, time.Second}, {"lifecycle.screen_deadline", l.ScreenDeadline, time.Second},
		{"lifecycle.repeat_window", l.RepeatWindow, time.Second}, {"lifecycle.override_for", l.OverrideFor, time.Second},
		{"lifecycle.person_deadline", l.PersonDeadline, time.Second}, {"lifecycle.rma_quiet", l.RMAQuiet, time.Second},
		{"lifecycle.slurm_interval", l.SlurmInterval, 100 * time.Millisecond},
	} {
		v.within(f.path, f.d, f.least, 365*day)
	}
	atLeast(v, "lifecycle.screen_tries", l.ScreenTries, 1)
	atLeast(v, "lifecycle.reboots_per_day", l.RebootsPerDay, 0)
	v.level("lifecycle.hard_case_level", l.HardCaseLevel)
	v.level("lifecycle.soft_case_level", l.SoftCaseLevel)
}

func (v *validator) level(path, name string) {
	var l checks.Level
	if err := l.UnmarshalText([]byte(name)); err != nil || l == checks.NoLevel {
		v.add(path, "%q: want one of [quick-mig quick standard soak intake]", name)
	}
}
