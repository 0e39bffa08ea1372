package lifecycle

import (
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// ladder is the rungs from mild to severe. A rung that did not help is followed by the next.
var ladder = []string{RungScreen, RungReset, RungReboot, RungPowerCycle, RungPerson}

func rank(rung string) int { return slices.Index(ladder, rung) } // -1 for none

func nextRung(rung string) string { return ladder[min(rank(rung)+1, len(ladder)-1)] }

func deeper(a, b string) string {
	if rank(a) > rank(b) {
		return a
	}
	return b
}

// rungFor is the first rung for an action: what fixing it takes, or a person.
func rungFor(a checks.Action) string {
	switch a {
	case checks.ResetGPU:
		return RungReset
	case checks.Reboot:
		return RungReboot
	case checks.FixConfig, checks.RMA:
		return RungPerson
	}
	return RungScreen
}

// firstRung is where the case enters the ladder: one rung on when the same cause was on the same part within the
// repeat window, a person at the third time.
func (s *step) firstRung() string {
	c := s.Case
	if len(c.Faults) == 0 {
		return RungPerson // a person's order, or screens that say nothing: no fault to mend
	}
	rung, times := c.Need, 0
	if c.Rung != "" {
		rung = deeper(rung, nextRung(c.Rung))
	}
	for _, p := range s.Past {
		if p.Cause == c.Cause && p.Part == c.Part && s.at.Sub(p.Closed) <= s.in.Policy.Lifecycle.RepeatWindow.D() {
			times++
			if p.Rung != "" {
				rung = deeper(rung, nextRung(p.Rung))
			}
		}
	}
	if times >= 2 {
		return RungPerson
	}
	return rung
}

// quarantineIfEmpty ends a drain: no job is on the node and none can come.
func (s *step) quarantineIfEmpty() {
	if s.State != Draining || s.DrainPending || s.marked(MarkOverridden) {
		return
	}
	if s.in.Slurm && !s.DrainedByUs && !s.foreign() {
		return
	}
	if len(s.Jobs) == 0 || s.Case.Unkillable {
		s.quarantine()
	}
}

// quarantine takes the node out of service. Evidence is gathered before anything that could destroy it.
func (s *step) quarantine() {
	s.revoke("quarantined: " + s.Case.Cause)
	s.Screen, s.Want, s.Tries = "", checks.NoLevel, 0
	s.enter(Quarantined)
	if s.Case.Cause == CauseOrder {
		s.Case.Rung = RungPerson
		return
	}
	s.Case.Evidence = "collecting"
	s.wait(s.in.Policy.Lifecycle.EvidenceDeadline.D())
	e := s.effect(EffectEvidence, map[string]string{"case": s.Case.ID})
	e.BootID, e.Deadline = s.BootID, s.Deadline
}

// evidenced ends the gathering of evidence and makes the first rung due.
func (s *step) evidenced(how string) {
	s.Case.Evidence, s.Case.Due = how, s.firstRung()
	s.rearm()
}

// climb makes the rung after the last one due, or the one that its faults ask for if that is further up.
func (s *step) climb() {
	s.Screen, s.Want, s.Tries = "", checks.NoLevel, 0
	last := s.Case.Rung
	if s.State == Screening {
		last = deeper(last, RungScreen) // whatever led here, a screen has failed now
	}
	s.Case.Due = deeper(nextRung(last), s.Case.Need)
	s.revoke("back on the ladder: " + s.Case.Cause)
	if s.State != Quarantined {
		s.enter(Quarantined)
	}
	if s.Case.Evidence == "" {
		s.quarantine()
	}
}

// remedied follows a rung that was carried out: a screen, unless a graver fault came up meanwhile.
func (s *step) remedied() {
	done := s.Case.Rung
	if s.rebooted {
		done = deeper(done, RungReboot)
	}
	if rank(s.Case.Need) > rank(done) {
		s.Case.Due = s.Case.Need
		s.enter(Quarantined)
		return
	}
	s.Screen, s.Want, s.Tries = "", s.Case.Level, 0
	s.enter(Screening)
}

// rungIfDue takes the due rung. Jobs, a person's hold or override, and observe mode make it wait.
func (s *step) rungIfDue() {
	if s.State != Quarantined || s.Case == nil || s.Case.Due == "" || s.Case.Evidence == "collecting" {
		return
	}
	rung := s.Case.Due
	if rung == RungReboot || rung == RungPowerCycle {
		s.Reboots = slices.DeleteFunc(s.Reboots, func(t time.Time) bool { return s.at.Sub(t) >= 24*time.Hour })
		// Reboot only what we drained; a foreign drain is somebody at work on the node.
		if len(s.Reboots) >= s.in.Policy.Lifecycle.RebootsPerDay {
			rung = RungPerson
		}
	}
	if rung != RungPerson && s.rungWaits() != "" {
		return
	}
	s.Case.Due, s.Case.Rung = "", rung
	s.Case.Rungs = append(s.Case.Rungs, rung)
	if rung != RungPerson {
		s.Case.Owner = Assay
	}
	l := s.in.Policy.Lifecycle
	switch rung {
	case RungScreen:
		s.Screen, s.Want, s.Tries = "", s.Case.Level, 0
		s.enter(Screening)
	case RungReset:
		s.enter(Remediating)
		s.wait(l.ResetDeadline.D())
		s.remedy(EffectResetGPU, map[string]string{"gpus": strings.Join(s.Case.GPUs, ",")})
	case RungReboot:
		s.Reboots = append(s.Reboots, s.at)
		s.enter(Remediating)
		s.wait(l.RebootDeadline.D())
		s.remedy(EffectReboot, map[string]string{"reason": s.DrainReason})
	case RungPowerCycle:
		s.Reboots = append(s.Reboots, s.at)
		s.enter(Remediating)
		s.wait(l.RebootDeadline.D())
		s.remedy(EffectPowerCycle, map[string]string{})
	default:
		if s.Case.Owner == Assay {
			s.Case.Owner = OnCall
		}
		if s.rmaIfDue(); s.State == RMA {
			return
		}
		s.rearm()
		s.page("needs_person", "needs_person "+s.Name, s.Reasons[0]+"; "+needs(s.Node))
	}
}

// remedy orders a rung. It is tied to this boot: once the node has booted, the order is void.
func (s *step) remedy(kind string, args map[string]string) {
	args["case"] = s.Case.ID
	e := s.effect(kind, args)
	e.BootID, e.Deadline = s.BootID, s.Deadline
}

// rungWaits says what the due rung waits for; empty if nothing.
func (s *step) rungWaits() string {
	switch {
	case s.marked(MarkOverridden):
		return "a person's override to end"
	case len(s.Holds) > 0:
		return "the hold of " + s.Holds[0].Owner + " to end"
	case len(s.Jobs) > 0 && !s.Case.Unkillable:
		return "its jobs to end"
	case s.in.Slurm && (!s.DrainedByUs || s.DrainPending):
		return "our drain to stand"
	case s.Case.Owner != Assay && s.Case.Owner != OnCall:
		return s.Case.Owner + " to give it back"
	case !s.caseActs():
		return "act mode"
	}
	return ""
}

// caseActs reports whether the case may take automatic steps: what a person ordered may, and what policy lets act now.
func (s *step) caseActs() bool {
	name, _, _ := strings.Cut(s.Case.Cause, " ")
	return s.Case.Cause == CauseOrder || s.in.Policy.ModeOf(name) == policy.Act
}
