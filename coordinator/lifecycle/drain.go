package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/certificate"
)

// maxReason is the most bytes of a reason that we write in Slurm.
const maxReason = 200

// ReasonPrefix starts every reason of ours in Slurm. It is for people: our own record, never this text, says who drained.
const ReasonPrefix = "assay:"

// Reason is the drain reason for people: "assay:Q-7F3K xid 79 GPU 3 fell off the bus". It is plain ASCII of at most
// 200 bytes without control characters, quotes, commas or "=", so that no tool of Slurm can misread it. Empty without a case.
func Reason(n Node) string {
	if n.Case == nil {
		return ""
	}
	text := ReasonPrefix + n.Case.ID
	if len(n.Reasons) > 0 {
		text += " " + n.Reasons[0]
	}
	return plain(text, maxReason)
}

// plain makes s safe to pass to Slurm: one space for each run of anything else.
func plain(s string, most int) string {
	var b strings.Builder
	gap := false
	for _, r := range s {
		switch {
		case r == ',':
			r = ';'
		case r <= ' ' || r > '~' || strings.ContainsRune("\"'`\\=|<>$", r):
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte(' ')
			gap = false
		}
		b.WriteRune(r)
	}
	out := b.String()
	if len(out) > most {
		out = strings.TrimRight(out[:most], " ")
	}
	return out
}

// drain takes the node out: in Slurm by a drain of our own, and in any case by its state.
func (s *step) drain() {
	s.Case.Out = true
	if !s.in.Slurm || s.foreign() || s.DrainedByUs && !s.ResumePending {
		return
	}
	s.DrainedByUs, s.DrainPending, s.ResumePending = true, true, false
	s.DrainReason, s.RedrainAfter = Reason(s.Node), time.Time{}
	s.effect(EffectDrain, map[string]string{"reason": s.DrainReason, "case": s.Case.ID})
}

// restate writes our reason again where the case has come to mean something graver.
func (s *step) restate() {
	if r := Reason(s.Node); s.DrainedByUs && r != s.DrainReason {
		s.DrainReason = r
		s.effect(EffectReason, map[string]string{"reason": r, "case": s.Case.ID})
	}
}

// redrain puts our drain back where it is gone, if the guard has room; else the node waits for room.
func (s *step) redrain() {
	if !s.in.Slurm || s.DrainedByUs || s.foreign() || !s.caseActs() {
		return
	}
	if ok, why := s.room("drain"); !ok {
		if _, held := s.Marks[MarkHeldBack]; !held {
			s.mark(MarkHeldBack, noEnd)
			s.page("undrained", "undrained "+s.Name, "should be drained and is not: "+why)
		}
		return
	}
	s.unmark(MarkHeldBack)
	s.spend("drain")
	s.drain()
}

// redrainIfDue orders a drain again that failed, whatever has moved the state's own deadline meanwhile. Where the guard has
// no room the mark waits for it; where the case may not act just now, it is looked at again.
func (s *step) redrainIfDue() {
	if s.RedrainAfter.IsZero() || s.at.Before(s.RedrainAfter) {
		return
	}
	s.RedrainAfter = time.Time{}
	if s.Case == nil || !s.Case.Out || !s.outState() || s.marked(MarkOverridden) {
		return
	}
	s.redrain()
	if s.in.Slurm && !s.DrainedByUs && !s.foreign() && !s.marked(MarkHeldBack) {
		s.RedrainAfter = s.at.Add(retryAfter)
	}
}

// outState reports whether the state is one in which a node with an Out case must not take jobs.
func (s *step) outState() bool {
	switch s.State {
	case Suspect, Draining, Quarantined, Remediating, RMA:
		return true
	case Screening:
		return s.Case != nil
	}
	return false
}

// endOverride puts the drain back when a person's override has run out.
func (s *step) endOverride() {
	until, ok := s.Marks[MarkOverridden]
	if !ok || until.IsZero() || s.at.Before(until) {
		return
	}
	s.unmark(MarkOverridden)
	if s.Case != nil && s.Case.Out && s.outState() {
		s.redrain()
		s.rearm()
	}
}

// resumeIfDue gives a certified node back to Slurm when we drained it, nothing blocks, and its certificate is fresh
// and as deep as its case demands. Without such a certificate it is screened again.
func (s *step) resumeIfDue() {
	if s.State == Certified && !s.DrainedByUs && s.Case != nil && s.Case.Out {
		s.close("clean; the drain in Slurm is not ours to end")
	}
	if s.State != Certified || !s.DrainedByUs || s.ResumePending || s.blocked() || s.at.Before(s.ResumeAfter) {
		return
	}
	if s.Case != nil {
		s.Demand = max(s.Demand, s.Case.Level)
	}
	if s.Certificate == nil || s.Suspended || !certificate.Meets(*s.Certificate, max(s.Demand, checks.QuickMIG), s.at, 0) {
		s.Want = max(s.Demand, checks.Quick)
		s.enter(Screening)
		return
	}
	args := map[string]string{"reason": s.DrainReason}
	if s.Case != nil {
		args["case"] = s.Case.ID
	}
	s.effect(EffectResume, args)
	s.ResumePending, s.DrainPending, s.ResumeAfter = true, false, time.Time{}
	s.close(outcomeClean(s.Certificate.Level))
}

// resumed records that the node is in service again.
func (s *step) resumed() {
	s.DrainedByUs, s.ResumePending, s.DrainPending, s.DrainReason, s.Rewriting = false, false, false, "", ""
	s.Demand, s.ResumeAfter, s.RedrainAfter = checks.NoLevel, time.Time{}, time.Time{}
}

// drainEnded and resumeEnded are how our orders to Slurm went.
func (s *step) drainEnded(ev EffectEnded) {
	if !s.DrainPending {
		return
	}
	s.DrainPending = false
	switch ev.Outcome {
	case "done":
	case "skipped":
		// Somebody else's drain stands already; Slurm's own state will say whose.
		s.DrainedByUs, s.DrainReason = false, ""
	default:
		s.DrainedByUs, s.DrainReason = false, ""
		s.page("drain_failed", "drain_failed", "drain failed: "+ev.Detail)
		s.RedrainAfter = s.at.Add(retryAfter)
		return
	}
	if s.State == Draining {
		s.quarantineIfEmpty()
	}
}

// retryAfter is the wait before an order to Slurm that failed is given again.
const retryAfter = 5 * time.Minute

func (s *step) resumeEnded(ev EffectEnded) {
	if !s.ResumePending {
		return
	}
	if ev.Outcome == "done" {
		s.resumed()
		return
	}
	// Ordered again after a while, unless Slurm's own state has told by then what made it fail.
	s.ResumePending, s.ResumeAfter = false, s.at.Add(retryAfter)
	if ev.Outcome == "failed" {
		s.page("resume_failed", "resume_failed", "resume failed: "+ev.Detail)
	}
}

func (s *step) override(user string) {
	until := s.at.Add(max(s.in.Policy.Lifecycle.OverrideFor.D(), time.Minute))
	s.mark(MarkOverridden, until)
	s.Screen, s.Want = "", checks.NoLevel
	s.Deadline = until
	s.page("overridden", "overridden "+s.Name, fmt.Sprintf("%s resumed it again in Slurm; left so until %s, case %s stays open",
		user, until.UTC().Format(time.RFC3339), s.Case.ID))
}
