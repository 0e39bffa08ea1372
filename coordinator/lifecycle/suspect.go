package lifecycle

import (
	"github.com/assay-gpu/assay/checks"
)

// suspect: a soft fault was seen once. The certificate is suspended, the node drained by us; jobs on it go on. The
// retest on the idle node decides.
func (s *step) suspect(ev Event) error {
	switch ev := ev.(type) {
	case Seen:
		if s.rebooted || s.ended != "" {
			s.Want = s.Case.Level
		}
	case HardFault:
		s.hardFault(ev.Finding, ev.OwnGPU)
	case SoftFault:
		s.fault(ev.Finding)
		s.Want = max(s.Want, s.Case.Level)
	case Screened:
		s.retested(ev)
	case JobsChanged:
		s.rearm()
	case DeadlinePassed:
		if len(s.Jobs) > 0 || s.marked(MarkOverridden) {
			s.rearm()
			return nil
		}
		s.note("no retest within its time")
		s.quarantine()
	case OrderRMA, OrderRepaired:
		return s.illegal(ev, "it is still to be retested", "quarantine it first")
	}
	return nil
}

func (s *step) retested(ev Screened) {
	switch {
	case passed(ev) && ev.Level >= s.Case.Level && (s.asked || s.Screen == "" && ev.Why == checks.WhyScreen):
		s.pass(ev)
	case ev.Verdict == checks.Fail:
		f, ok := s.worst(ev)
		if !ok {
			return
		}
		if f.HardFault() {
			s.hardFault(f, false)
			return
		}
		s.fault(f)
		if s.asked {
			// Reproduced: as a hard fault. The guard was asked when the node became suspect.
			s.out(f, s.Case.Hard, false)
		}
	case s.asked:
		s.unknown(ev, s.Case.Level)
	}
}
