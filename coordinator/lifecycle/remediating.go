package lifecycle

// remediating: a rung is under way. It ends with its effect, a new boot, or its deadline.
func (s *step) remediating(ev Event) error {
	switch ev := ev.(type) {
	case Seen:
		// Whatever the rung, a boot has reset all that a reset would have.
		if s.rebooted {
			s.remedied()
		}
	case HardFault:
		s.fault(ev.Finding)
	case SoftFault:
		s.fault(ev.Finding)
	case ResetWanted:
		s.fault(ev.Finding)
	case EffectEnded:
		s.rungEnded(ev)
	case DeadlinePassed:
		s.note("%s not done in its time", s.Case.Rung)
		s.climb()
	case OrderRMA:
		s.sendBack(ev)
	case OrderRepaired:
		return s.illegal(ev, "no part of it is with the vendor", "")
	}
	return nil
}

func (s *step) rungEnded(ev EffectEnded) {
	kind := map[string]string{RungReset: EffectResetGPU, RungReboot: EffectReboot, RungPowerCycle: EffectPowerCycle}[s.Case.Rung]
	switch {
	case ev.Kind != kind:
	case ev.Outcome == "failed":
		s.note("%s failed: %s", s.Case.Rung, ev.Detail)
		s.climb()
	case s.Case.Rung == RungReset, ev.Outcome == "skipped":
		s.remedied()
	}
	// A reboot that was ordered is done when the node shows a new boot.
}
