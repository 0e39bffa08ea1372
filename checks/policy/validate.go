package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// A Fault is one thing wrong with a policy.
type Fault struct {
	Path    string `json:"path"` // by the file's names, as guard.fleet_hour_share
	Message string `json:"message"`
}

// Validate lists every fault of p, ordered by path; none means that p may be put in force. Whether the ids in
// p.Checks exist is for the catalog to say.
func Validate(p Policy) []Fault {
	v := &validator{}
	oneOf(v, "mode", p.Mode, Off, Observe, Act)
	for id, c := range p.Checks {
		oneOf(v, "checks."+id+".mode", c.Mode, "", Off, Observe, Act)
	}
	v.inventory(p.Inventory)
	atLeast(v, "row_remap.max_correctable", p.RowRemap.MaxCorrectable, 0)
	v.xid(p.XID)
	v.agent(p.Agent)
	v.hooks(p.Hooks)
	v.certificate(p.Certificate)
	v.guard(p.Guard)
	v.lifecycle(p.Lifecycle)
	slices.SortFunc(v.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return v.faults
}

type validator struct{ faults []Fault }

func (v *validator) add(path, format string, args ...any) {
	v.faults = append(v.faults, Fault{path, fmt.Sprintf(format, args...)})
}

func oneOf[T ~string](v *validator, path string, got T, want ...T) {
	if slices.Contains(want, got) {
		return
	}
	var names []string
	for _, w := range want {
		if w != "" {
			names = append(names, string(w))
		}
	}
	v.add(path, "%q: want one of %v", string(got), names)
}

func atLeast[T cmp.Ordered](v *validator, path string, got, least T) {
	if got < least {
		v.add(path, "%v: want %v or more", got, least)
	}
}

// within wants a duration between least and most, both included.
func (v *validator) within(path string, got Duration, least, most time.Duration) {
	if got.D() < least || got.D() > most {
		v.add(path, "%s: want %s to %s", got, Duration(least), Duration(most))
	}
}

// share wants a number above 0 and not above 1; NaN is neither.
func (v *validator) share(path string, got float64) {
	if !(got > 0 && got <= 1) || math.IsNaN(got) {
		v.add(path, "%v: want a share above 0 and not above 1, as 0.02 for 2 %%", got)
	}
}

func (v *validator) inventory(i Inventory) {
	atLeast(v, "inventory.count", i.Count, 0)
	if i.Count > 1024 {
		v.add("inventory.count", "%d: no node has more than 1024 GPUs", i.Count)
	}
}

func (v *validator) xid(x XID) {
	for code, name := range x.Actions {
		path := fmt.Sprintf("xid.actions.%d", code)
		if code < 1 {
			v.add(path, "want an XID, 1 or more")
		}
		var a checks.Action
		if err := a.UnmarshalText([]byte(name)); err != nil {
			v.add(path, "%v", err)
		}
	}
}

func (v *validator) agent(a Agent) {
	v.within("agent.interval", a.Interval, 100*time.Millisecond, time.Hour)
	v.within("agent.heartbeat", a.Heartbeat, 100*time.Millisecond, 10*time.Minute)
	v.within("agent.call_deadline", a.CallDeadline, 100*time.Millisecond, 5*time.Minute)
	v.within("agent.init_deadline", a.InitDeadline, 100*time.Millisecond, 10*time.Minute)
	atLeast(v, "agent.hung_children", a.HungChildren, 1)
	v.within("agent.stuck_child", a.StuckChild, time.Second, time.Hour)
	atLeast(v, "agent.spool_bytes", a.SpoolBytes, 1<<20)
	v.within("agent.incident_gap", a.IncidentGap, 0, time.Hour)
	v.within("agent.incident_cause", a.IncidentCause, 0, time.Hour)
}

func (v *validator) hooks(h Hooks) {
	// slurmd waits as long as it is told to, but a node whose prolog takes longer than 20 s holds up every job start.
	v.within("hooks.budget", h.Budget, time.Second, 18*time.Second)
	v.within("hooks.permit_wait", h.PermitWait, 0, 18*time.Second)
	if sum := h.Budget.D() + h.PermitWait.D(); sum > 19*time.Second && h.Budget.D() <= 18*time.Second && h.PermitWait.D() <= 18*time.Second {
		v.add("hooks.permit_wait", "%s after a suite of %s: together more than the 19s that a hook waits", h.PermitWait, h.Budget)
	}
	v.within("hooks.offline_max", h.OfflineMax, 0, 30*day)
	v.within("hooks.snapshot_age", h.SnapshotAge, time.Second, time.Hour)
	oneOf(v, "hooks.fail_mode", h.FailMode, "open", "closed")
	atLeast(v, "hooks.release_tries", h.ReleaseTries, 0)
}

func (v *validator) certificate(c Certificate) {
	for _, f := range []struct {
		path string
		d    Duration
	}{
		{"certificate.quick_mig", c.QuickMIG}, {"certificate.quick", c.Quick}, {"certificate.standard", c.Standard}, {"certificate.soak", c.Soak},
		{"certificate.intake", c.Intake},
	} {
		v.within(f.path, f.d, time.Second, 365*day)
	}
	v.within("certificate.grace", c.Grace, 0, 30*day)
}

func (v *validator) guard(g Guard) {
	v.share("guard.fleet_hour_share", g.FleetHourShare)
	v.share("guard.fleet_day_share", g.FleetDayShare)
	v.share("guard.leaf_hour_share", g.LeafHourShare)
	v.share("guard.reason_hour_share", g.ReasonShare)
	v.share("guard.storm_share", g.StormShare)
	v.share("guard.hard_page_share", g.HardPageShare)
	atLeast(v, "guard.fleet_hour_max", g.FleetHourMax, 1)
	atLeast(v, "guard.storm_nodes", g.StormNodes, 1)
	v.within("guard.storm_window", g.StormWindow, time.Second, day)
	if g.FleetDayShare < g.FleetHourShare {
		v.add("guard.fleet_day_share", "%v: below fleet_hour_share, %v", g.FleetDayShare, g.FleetHourShare)
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
