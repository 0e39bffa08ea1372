package lifecycle

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/certificate"
)

// screening: a screen decides. Without a case it gives way to jobs, and a prolog's quick suite decides as well; with
// one, the node is out of service until a screen of the case's level passes.
func (s *step) screening(ev Event) error {
	out := s.Case != nil && s.Case.Out
	switch ev := ev.(type) {
	case Seen:
		if s.rebooted || s.ended != "" {
			s.Want = max(s.Want, s.screenLevel())
		}
	case HardFault:
		if !out {
			s.hardFault(ev.Finding, ev.OwnGPU)
			return nil
		}
		s.fault(ev.Finding)
		s.climb()
	case SoftFault:
		if out {
			s.fault(ev.Finding)
			return nil
		}
		s.softFault(ev.Finding)
	case Screened:
		s.judge(ev, s.screenLevel())
	case Room:
		if s.Case.Planned {
			s.planReset()
		} else {
			s.suspendIfRoom()
		}
	case DeadlinePassed:
		s.screenDeadline(s.screenLevel())
	case OrderRMA:
		if !out {
			return s.illegal(ev, "it is not out of service", "quarantine it first")
		}
		s.sendBack(ev)
	case OrderRepaired:
		if s.Case == nil || s.Case.Level != checks.Intake {
			return s.illegal(ev, "no part of it is with the vendor", "")
		}
	}
	return nil
}

// screenLevel is how deep the screen must go that certifies the node where it stands.
func (s *step) screenLevel() checks.Level {
	switch {
	case s.State == Enrolled && !s.Adopt:
		return checks.Intake
	case s.Case != nil:
		return max(s.Case.Level, s.Demand)
	case s.Demand != checks.NoLevel:
		return s.Demand
	}
	return checks.Quick
}

// judge takes a screen's verdict on a node that waits for one. A pass less deep than need proves too little.
func (s *step) judge(ev Screened, need checks.Level) {
	enough := need
	if s.Case == nil && s.Demand == checks.NoLevel && need == checks.Quick {
		enough = checks.QuickMIG // a board in MIG mode earns no more, and quick is what hooks ask
	}
	switch {
	case passed(ev) && ev.Level >= enough:
		s.pass(ev)
	case ev.Verdict == checks.Fail && s.Case != nil && s.Case.Out:
		f, ok := s.worst(ev)
		if !ok {
			return
		}
		s.fault(f)
		if s.asked {
			s.climb()
		}
	case ev.Verdict == checks.Fail:
		s.Tries = 0
		if s.asked {
			s.Want = checks.NoLevel
		}
		s.failed(ev)
	case s.asked:
		s.unknown(ev, need)
	}
}

// pass certifies: the certificate, the end of the case and, in settle, the resume are one step.
func (s *step) pass(ev Screened) {
	c := certificate.New(certificate.Screen{Level: ev.Level, Tested: ev.Tested, NotTested: ev.NotTested, Suite: ev.Suite,
		Inventory: ev.Inventory, Adopted: s.adopted(ev), At: s.at}, s.in.Policy.Certificate)
	c.Node = s.Name
	if c.NodeSerial == "" {
		c.NodeSerial = s.Inventory.NodeSerial
	}
	upgrade := s.State == Screening && s.Case == nil && ev.Level == checks.Quick
	s.Certificate, s.Suspended = &c, false
	s.write(IssueCertificate{Certificate: c})
	if c.Adopted {
		s.mark(MarkAdopted, noEnd)
	} else {
		s.unmark(MarkAdopted)
	}
	s.unmark(MarkLapsed)
	s.unmark(MarkHeldBack)
	if s.Case == nil || !s.Case.Out {
		s.unmark(MarkOverridden)
	}
	s.Screen, s.Want, s.Tries = "", checks.NoLevel, 0
	if upgrade {
		s.Want = checks.Standard
	}
	if s.State == Suspect {
		s.mark(MarkSuspicious, noEnd)
	}
	if s.Case != nil && (!s.DrainedByUs || !s.Case.Out) {
		s.close(outcomeClean(ev.Level))
	}
	s.enter(Certified)
}

// adopted reports whether the certificate still rests on adoption: no intake screen stands behind it.
func (s *step) adopted(ev Screened) bool {
	if ev.Level >= checks.Intake {
		return false
	}
	return s.State == Enrolled && s.Adopt || s.marked(MarkAdopted)
}

// unknown counts a screen that told nothing. Three in a row make a case for a person; the node is not drained for it,
// and what certificate it had lives on in grace.
func (s *step) unknown(ev Screened, need checks.Level) {
	if len(s.Jobs) > 0 {
		return // it gave way to a job
	}
	if s.Tries++; s.Tries < s.in.Policy.Lifecycle.ScreenTries {
		return
	}
	s.Tries, s.Want = 0, checks.NoLevel
	text := "cannot screen: " + s.Name + " gave no verdict " + fmt.Sprint(s.in.Policy.Lifecycle.ScreenTries) + " times"
	if len(ev.NotTested) > 0 {
		text += "; not tested: " + strings.Join(ev.NotTested, " ")
	}
	if s.Case == nil {
		s.open(Case{Cause: CauseCannotScreen, Part: string(checks.KindNode), Level: need})
		s.Reasons = []string{plain(text, maxReason)}
	}
	s.Case.Owner = OnCall
	s.wait(s.in.Policy.Lifecycle.PersonDeadline.D())
	s.page("cannot_screen", "cannot_screen", text)
}

// screenDeadline counts a screen that never ended as Unknown, and asks again where none is under way.
func (s *step) screenDeadline(level checks.Level) {
	s.rearm()
	switch {
	case s.Lost || len(s.Jobs) > 0:
		s.Want = max(s.Want, level)
	case s.Screen != "":
		s.Screen = ""
		s.unknown(Screened{}, level)
	default:
		s.Want = max(s.Want, level)
	}
}
