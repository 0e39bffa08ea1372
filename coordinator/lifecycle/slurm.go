package lifecycle

import (
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// CheckSlurm is the check name of findings that Slurm made itself.
const CheckSlurm = "slurm"

// slurmFinding makes a finding of a reason that Slurm wrote itself. A job whose processes cannot be killed needs a
// reboot; for the rest a screen tells whether the hardware is at fault.
func (s *step) slurmFinding(reason string) checks.Finding {
	f := checks.Finding{Check: CheckSlurm, Subject: checks.Subject{Kind: checks.KindNode, Node: s.Name}, Verdict: checks.Fail,
		Action: checks.Drain, Reason: plain(reason, maxReason), At: s.at}
	if unkillable(reason) {
		f.Action = checks.Reboot
	}
	return f
}

func unkillable(reason string) bool { return strings.HasPrefix(reason, "Kill task failed") }

// slurmDrained: a drain that is not ours. A person's is his hold; Slurm's own becomes a case of ours.
func (s *step) slurmDrained(ev SlurmDrained) error {
	if !ev.BySlurm {
		s.theirs(Hold{Owner: ev.User, Reason: ev.Reason, Drain: true})
		return nil
	}
	if s.DrainedByUs {
		return s.slurmReason(SlurmReason{At: ev.At, User: ev.User, Reason: ev.Reason, BySlurm: true})
	}
	f := s.slurmFinding(ev.Reason)
	if !s.acts(f, "taken over Slurm's drain") {
		return nil
	}
	s.fault(f)
	s.Case.Unkillable = s.Case.Unkillable || unkillable(ev.Reason)
	s.adopt(ev.Reason)
	switch s.State {
	case Enrolled, Certified, Screening, Suspect, Withheld:
		s.Suspended = s.Certificate != nil
		s.unmark(MarkHeldBack)
		s.Screen, s.Want, s.Tries = "", checks.NoLevel, 0
		s.enter(Draining)
	}
	s.quarantineIfEmpty()
	return nil
}

// adopt makes Slurm's drain ours: by our record, and by our reason in its place. It takes no capacity. Where Slurm has
// written over a person's drain, the drain stays his.
func (s *step) adopt(reason string) {
	s.Case.Out = true
	if s.foreign() {
		return
	}
	s.DrainedByUs, s.DrainPending, s.ResumePending = true, false, false
	s.rewrite(reason)
}

// rewrite puts our reason in the place of Slurm's, once for each time that Slurm wrote. With its case closed a node that waits
// for its resume keeps the reason it had: the resume looks for it.
func (s *step) rewrite(theirs string) {
	if s.Rewriting == theirs && theirs != "" {
		return
	}
	s.Rewriting = theirs
	args := map[string]string{}
	if s.Case != nil {
		s.DrainReason, args["case"] = Reason(s.Node), s.Case.ID
	}
	args["reason"] = s.DrainReason
	s.effect(EffectReason, args)
}

// reasonEnded: our reason stands again, and a resume that waits for it is due.
func (s *step) reasonEnded(ev EffectEnded) {
	s.Rewriting = ""
	if ev.Outcome == "done" && s.Case == nil {
		s.ResumeAfter = time.Time{}
	}
}

// slurmReason: our drain stands but its reason is not ours any more. Slurm's own hand changes nothing; a person's
// makes the drain his, and we never resume it.
func (s *step) slurmReason(ev SlurmReason) error {
	if !ev.BySlurm {
		s.theirs(Hold{Owner: ev.User, Reason: ev.Reason, Drain: true, Overwrote: s.DrainedByUs})
		return nil
	}
	if !s.DrainedByUs {
		return nil
	}
	if unkillable(ev.Reason) {
		s.fault(s.slurmFinding(ev.Reason))
		s.Case.Unkillable = true
	}
	s.rewrite(ev.Reason)
	s.quarantineIfEmpty()
	return nil
}

// theirs notes a person's drain as his hold. If the drain was ours, it no longer is.
func (s *step) theirs(h Hold) {
	i := slices.IndexFunc(s.Holds, func(x Hold) bool { return x.Owner == h.Owner && x.Drain })
	switch {
	case i < 0:
		s.Holds = append(s.Holds, h)
	default:
		h.Overwrote = h.Overwrote || s.Holds[i].Overwrote
		s.Holds[i] = h
	}
	s.DrainedByUs, s.DrainPending, s.ResumePending, s.DrainReason, s.Rewriting = false, false, false, "", ""
	s.quarantineIfEmpty()
}

// slurmUndrained: a person's drain is gone and the holds for it are too. A node that must be out is drained by us again; if
// the drain was ours until he changed its reason, he has resumed a node of ours.
func (s *step) slurmUndrained(user string) {
	if !s.foreign() && s.DrainedByUs {
		s.slurmResumed(user) // it was Slurm's own drain, and ours since we took it over
		return
	}
	overwrote, found := false, false
	s.Holds = slices.DeleteFunc(s.Holds, func(h Hold) bool {
		if h.Drain { // no drain stands, so none of them can
			overwrote, found = overwrote || h.Overwrote, true
			return true
		}
		return false
	})
	if !found || s.Case == nil || !s.Case.Out || !s.outState() {
		return
	}
	if overwrote {
		s.overrule(user)
		return
	}
	s.redrain()
}

// slurmResumed: our drain is gone and it was not us.
func (s *step) slurmResumed(user string) {
	if !s.DrainedByUs || s.DrainPending {
		return
	}
	if s.State == Certified {
		s.resumed()
		s.close("resumed in Slurm by " + user)
		return
	}
	s.DrainedByUs, s.ResumePending, s.DrainReason, s.Rewriting = false, false, "", ""
	if s.Case != nil && s.outState() {
		s.overrule(user)
	}
}

// overrule answers a person who resumed a node of ours: once by draining it again, then by giving way for a day.
func (s *step) overrule(user string) {
	if s.marked(MarkOverridden) {
		return
	}
	if s.ForeignResumes++; s.ForeignResumes > 1 {
		s.override(user)
		return
	}
	s.note("%s resumed it in Slurm; drained again", user)
	s.redrain()
}
