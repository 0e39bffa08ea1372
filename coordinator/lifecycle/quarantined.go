package lifecycle

// quarantined: out of service. Evidence first, then the ladder; what the ladder cannot settle waits for a person.
func (s *step) quarantined(ev Event) error {
	switch ev := ev.(type) {
	case HardFault:
		s.fault(ev.Finding)
	case SoftFault:
		s.fault(ev.Finding)
	case ResetWanted:
		s.fault(ev.Finding)
	case EffectEnded:
		if ev.Kind == EffectEvidence && s.Case.Evidence == "collecting" {
			if ev.Outcome == "done" {
				s.evidenced("complete")
			} else {
				s.evidenced("partial")
			}
		}
	case DeadlinePassed:
		s.quarantineDeadline()
	case OrderRMA:
		s.sendBack(ev)
	case OrderRepaired:
		return s.illegal(ev, "no part of it is with the vendor", "first: assay rma open "+s.Case.ID+" --reason TEXT, or: assay node resume "+s.Name+" --reason TEXT")
	}
	return nil
}

func (s *step) quarantineDeadline() {
	if s.Case.Evidence == "collecting" {
		s.evidenced("partial")
		return
	}
	s.rearm()
	if s.marked(MarkOverridden) {
		return
	}
	if s.Case.Due != "" {
		s.redrain()
		s.page("quarantine_waits", "quarantine_waits "+s.Name, s.Case.Due+" waits for "+s.rungWaits())
		return
	}
	s.page("needs_person", "needs_person "+s.Name, s.Reasons[0]+"; still waits: "+needs(s.Node))
}
