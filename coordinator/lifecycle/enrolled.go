package lifecycle

import "github.com/assay-gpu/assay/checks"

// enrolled: under our care, never certified. With --adopt a passing prolog certifies it; otherwise, or when none has
// passed by the deadline, the intake screen does.
func (s *step) enrolled(ev Event) error {
	switch ev := ev.(type) {
	case Seen:
		if !s.Adopt && s.Want == checks.NoLevel && s.Tries == 0 && s.Case == nil {
			s.Want = checks.Intake
		}
	case HardFault:
		s.hardFault(ev.Finding, ev.OwnGPU)
	case SoftFault:
		s.softFault(ev.Finding)
	case Screened:
		need := checks.Intake
		if s.Adopt {
			need = checks.QuickMIG
		}
		s.judge(ev, need)
	case Room:
		s.suspendIfRoom()
	case DeadlinePassed:
		s.screenDeadline(checks.Intake)
	case OrderRMA, OrderRepaired:
		return s.illegal(ev, "it has no case", "")
	}
	return nil
}
