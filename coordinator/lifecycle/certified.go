package lifecycle

import (
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/certificate"
)

// certified: in service. Hard faults revoke first; soft ones suspend if the guard has room.
func (s *step) certified(ev Event) error {
	switch ev := ev.(type) {
	case Seen:
		if s.ended != "" {
			s.rescreen(checks.Quick)
		}
	case HardFault:
		s.hardFault(ev.Finding, ev.OwnGPU)
	case SoftFault:
		s.softFault(ev.Finding)
	case ResetWanted:
		if s.fault(ev.Finding) && s.Case.Planned {
			s.planReset()
		}
	case Screened:
		s.certifiedScreened(ev)
	case JobsChanged:
		if len(s.Jobs) == 0 && s.marked(MarkLapsed) {
			s.unmark(MarkLapsed)
			s.rescreen(s.renewal())
		}
	case Expired:
		s.expire()
	case Room:
		if s.Case.Planned {
			s.planReset()
		} else {
			s.suspendIfRoom()
		}
	case DeadlinePassed:
		s.certifiedDeadline()
	case OrderRMA, OrderRepaired:
		return s.illegal(ev, "it is in service", "quarantine it first")
	}
	return nil
}

// rescreen sends a node without a certificate that holds to a screen. The case and the drain, where there are any, stay.
func (s *step) rescreen(level checks.Level) {
	s.Screen, s.Tries, s.ResumePending = "", 0, false
	s.Want = max(level, s.Demand)
	if s.Case != nil {
		s.Want = max(s.Want, s.Case.Level)
	}
	s.enter(Screening)
}

// renewal is how deep the screen goes that follows an expiry: as deep as before, but what takes hours is not repeated.
func (s *step) renewal() checks.Level {
	if s.Certificate != nil && s.Certificate.Level >= checks.Standard {
		return checks.Standard
	}
	return checks.Quick
}

func (s *step) certifiedScreened(ev Screened) {
	held := s.Certificate != nil && certificate.Holds(*s.Certificate, s.at)
	switch {
	case passed(ev):
		if s.asked && ev.Level >= s.Want {
			s.Want, s.Tries = checks.NoLevel, 0
		}
		if s.Case != nil && !s.Case.Out && !s.Case.Planned && ev.Level >= s.Case.Level {
			s.close(outcomeClean(ev.Level))
			s.mark(MarkSuspicious, noEnd)
		}
		// A certificate of another suite proves nothing of this one: what passed now takes its place.
		if !held || ev.Level > s.Certificate.Level || ev.Stale != 0 && uint64(ev.Stale) == s.Certificate.Serial {
			want := s.Want
			s.pass(ev)
			s.Want = want
			return
		}
		if s.asked {
			s.inconclusive()
		}
	case ev.Verdict == checks.Fail:
		if s.asked {
			s.Want, s.Tries = checks.NoLevel, 0
		}
		if s.Case != nil && s.Case.Out {
			// Passed, and waiting for a hold to end before its resume: back onto the ladder.
			if f, ok := s.worst(ev); ok {
				s.fault(f)
				s.climb()
			}
			return
		}
		s.failed(ev)
	case s.asked:
		s.inconclusive()
	}
}

// inconclusive gives up on a deeper screen that gave no verdict: the certificate held stands.
func (s *step) inconclusive() {
	if s.Want == checks.NoLevel || len(s.Jobs) > 0 {
		return
	}
	if s.Tries++; s.Tries >= s.in.Policy.Lifecycle.ScreenTries {
		s.Tries, s.Want = 0, checks.NoLevel
	}
}

// expire: under a job the certificate lapses and is renewed at the job's end; an idle node is screened at once.
func (s *step) expire() {
	if s.Certificate == nil || s.at.Before(s.Certificate.Expires) || s.marked(MarkLapsed) {
		return
	}
	if len(s.Jobs) > 0 {
		s.mark(MarkLapsed, noEnd)
		s.rearm()
		return
	}
	s.rescreen(s.renewal())
}

func (s *step) certifiedDeadline() {
	if s.Certificate == nil || !s.at.Before(s.Certificate.Expires) {
		s.rearm()
		s.expire()
		return
	}
	if s.Case != nil && s.Screen == "" && !s.Case.Planned {
		s.Want = max(s.Want, s.Case.Level)
	}
	s.rearm()
}
