package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// RiskNoCertificate is the risk that an operator must name to resume a node that has not passed its screen.
const RiskNoCertificate = "no-certificate"

func (s *step) orderHold(ev OrderHold) error {
	h := Hold{Owner: ev.By, Reason: ev.Reason, Expires: ev.Until}
	if !ev.Until.IsZero() && !s.at.Before(ev.Until) {
		return s.illegal(ev, "the hold would have ended already", "give a time to come")
	}
	i := slices.IndexFunc(s.Holds, func(x Hold) bool { return x.Owner == ev.By && !x.Drain })
	if i < 0 {
		s.Holds = append(s.Holds, h)
	} else {
		s.Holds[i] = h
	}
	return nil
}

func (s *step) orderUnhold(ev OrderUnhold) error {
	owner := ev.Owner
	if owner == "" {
		owner = ev.By
	}
	for _, h := range s.Holds {
		if h.Owner == owner && h.Drain {
			return s.illegal(ev, owner+"'s hold is a drain in Slurm", "it ends when he resumes the node in Slurm")
		}
	}
	n := len(s.Holds)
	s.Holds = slices.DeleteFunc(s.Holds, func(h Hold) bool { return h.Owner == owner })
	if len(s.Holds) == n {
		return s.illegal(ev, "no hold by "+owner, "")
	}
	return nil
}

// retire takes the node out of assay's care. What is drained stays drained: nobody vouches for it.
func (s *step) retire(ev OrderRetire) {
	s.revoke("retired by " + ev.By)
	s.close("retired by " + ev.By + ": " + ev.Reason)
	s.Marks, s.Holds, s.Lost, s.Screen, s.Want, s.Tries = nil, nil, false, "", checks.NoLevel, 0
	s.resumed()
	s.enter(Retired)
}

// orderDrain takes the node out on a person's word. The guard bounds automatic steps only, so it is not asked.
func (s *step) orderDrain(ev OrderDrain) error {
	text := fmt.Sprintf("drained by %s: %s", ev.By, ev.Reason)
	if s.Case != nil && s.Case.Out {
		// Out already, and somebody wants it kept out.
		if slices.Contains(s.Reasons, text) {
			return nil
		}
		return s.orderHold(OrderHold{At: ev.At, By: ev.By, Reason: ev.Reason})
	}
	if s.Case == nil {
		s.open(Case{Cause: CauseOrder, Part: string(checks.KindNode),
			Level: caseLevel(checks.Finding{}, s.in.Policy), Owner: ev.By})
		s.Reasons = []string{text}
	} else {
		s.Reasons = append(s.Reasons, text)
	}
	s.Suspended = s.Certificate != nil
	s.Screen, s.Want, s.Tries = "", checks.NoLevel, 0
	s.unmark(MarkHeldBack)
	s.drain()
	s.enter(Draining)
	s.quarantineIfEmpty()
	return nil
}

// orderCancel ends a drain before it is complete. A resume still needs a fresh certificate.
func (s *step) orderCancel(ev OrderCancel) error {
	switch {
	case s.State == Draining:
		s.note("drain cancelled by %s: %s", ev.By, ev.Reason)
		s.Want = s.Case.Level
		s.enter(Screening)
		return nil
	case s.State == Screening && s.Case != nil:
		return nil
	}
	return s.illegal(ev, "nothing is draining", "")
}

// orderResume is a person's word that the node may serve again: it is screened as its case demands and resumed when
// that passes, or at once if he takes the risk upon himself.
func (s *step) orderResume(ev OrderResume) error {
	if ev.AcceptRisk != "" && ev.AcceptRisk != RiskNoCertificate {
		return s.illegal(ev, fmt.Sprintf("risk %q is none that can be accepted", ev.AcceptRisk), "--accept-risk="+RiskNoCertificate)
	}
	s.Holds = slices.DeleteFunc(s.Holds, func(h Hold) bool { return h.Owner == ev.By && !h.Drain })
	if ev.AcceptRisk == RiskNoCertificate && s.State != Certified && s.State != Enrolled {
		return s.release(ev)
	}
	switch s.State {
	case Suspect, Withheld:
		s.Want = s.Case.Level
	case Draining, Quarantined:
		s.Case.Due = ""
		if s.Case.Owner == ev.By || s.Case.Owner == OnCall {
			s.Case.Owner = Assay // given back
		}
		if s.Case.Evidence == "collecting" {
			s.Case.Evidence = "partial"
		}
		s.note("back to screening by %s: %s", ev.By, ev.Reason)
		s.Screen, s.Want, s.Tries = "", s.Case.Level, 0
		s.enter(Screening)
	case Screening:
		if s.Want == checks.NoLevel && s.Screen == "" {
			s.Want = s.screenLevel()
		}
	case Certified:
		if s.DrainedByUs || s.marked(MarkHeldBack) {
			return nil
		}
		return s.illegal(ev, "it is in service", "")
	case Remediating:
		return s.illegal(ev, "a "+s.Case.Rung+" is under way", "it is screened when that is done; or --accept-risk="+RiskNoCertificate)
	case RMA:
		return s.illegal(ev, "its part is with the vendor", "assay rma update "+s.Name+" --outcome TEXT")
	default:
		return s.illegal(ev, "it has never been certified", next(s.Node))
	}
	return nil
}

// release resumes without a certificate, on a person's own responsibility.
func (s *step) release(ev OrderResume) error {
	switch {
	case s.State == Screening && s.Case == nil:
		if s.marked(MarkOverridden) {
			return nil
		}
		return s.illegal(ev, "it is not out of service", "")
	case len(s.Holds) > 0:
		return s.illegal(ev, "the hold of "+s.Holds[0].Owner+" stands: "+s.Holds[0].Reason, "ask its owner to end it")
	}
	if s.DrainedByUs {
		s.effect(EffectResume, map[string]string{"reason": s.DrainReason, "case": s.Case.ID, "by": ev.By})
		s.ResumePending, s.DrainPending = true, false
	}
	s.revoke("released by " + ev.By + " without a fresh certificate")
	s.close(fmt.Sprintf("released by %s without a certificate: %s", ev.By, ev.Reason))
	s.mark(MarkOverridden, s.at.Add(max(s.in.Policy.Lifecycle.OverrideFor.D(), time.Minute)))
	s.Screen, s.Want, s.Tries, s.Demand = "", checks.Quick, 0, checks.NoLevel
	s.enter(Screening)
	return nil
}
