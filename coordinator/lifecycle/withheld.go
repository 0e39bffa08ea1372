package lifecycle

import "github.com/assay-gpu/assay/checks"

// withheld: the certificate is revoked, the guard had no room to drain. It waits for room, for a clean screen of the
// case's level, or for a person.
func (s *step) withheld(ev Event) error {
	switch ev := ev.(type) {
	case Seen:
		if s.rebooted {
			s.Want = s.Case.Level
		}
	case HardFault:
		s.fault(ev.Finding)
		if ev.OwnGPU {
			s.takeOut(true)
		}
	case SoftFault:
		s.fault(ev.Finding)
	case Room:
		if ok, _ := s.room("drain"); ok {
			s.Screen, s.Want, s.Tries = "", checks.NoLevel, 0
			s.takeOut(false)
		}
	case Screened:
		s.withheldScreened(ev)
	case DeadlinePassed:
		s.rearm()
		s.Want = s.Case.Level
		s.page("withheld", "withheld "+s.Case.Cause, s.Reasons[0]+"; still withheld, not drained")
	case OrderRMA, OrderRepaired:
		return s.illegal(ev, "it is not drained", "drain it first: assay node drain "+s.Name+" --reason TEXT")
	}
	return nil
}

func (s *step) withheldScreened(ev Screened) {
	switch {
	case passed(ev) && ev.Level >= s.Case.Level:
		s.pass(ev)
	case ev.Verdict == checks.Fail:
		if f, ok := s.worst(ev); ok {
			s.fault(f)
		}
		if s.asked {
			s.Want = checks.NoLevel // asked again at the deadline
		}
	case s.asked:
		if s.Tries++; s.Tries >= s.in.Policy.Lifecycle.ScreenTries {
			s.Tries, s.Want = 0, checks.NoLevel
		}
	}
}
