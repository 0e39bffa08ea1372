package lifecycle

import (
	"fmt"
	"slices"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/certificate"
)

// rma: a part is with the vendor. New hardware, or a person's word on the outcome, leads to the intake screen.
func (s *step) rma(ev Event) error {
	switch ev := ev.(type) {
	case Seen:
		if what := replaced(s.Expected, s.Inventory); what != "" {
			s.repaired("replaced: " + what)
		}
	case HardFault:
		s.fault(ev.Finding)
	case SoftFault:
		s.fault(ev.Finding)
	case DeadlinePassed:
		s.rearm()
		s.page("rma_quiet", "rma_quiet "+s.Name, fmt.Sprintf("RMA without movement for %s: %s", s.in.Policy.Lifecycle.RMAQuiet.D(), s.Reasons[0]))
	case OrderRMA:
		return nil
	case OrderRepaired:
		s.repaired(ev.Outcome + ", by " + ev.By)
	}
	return nil
}

// sendBack opens the RMA on a person's word.
func (s *step) sendBack(ev OrderRMA) {
	s.revoke("RMA opened by " + ev.By)
	s.note("RMA opened by %s: %s", ev.By, ev.Reason)
	s.Case.Owner, s.Case.Due = ev.By, ""
	if s.Case.Evidence == "collecting" {
		s.Case.Evidence = "partial"
	}
	s.Screen, s.Want, s.Tries = "", checks.NoLevel, 0
	s.enter(RMA)
}

func (s *step) repaired(outcome string) {
	s.note("repaired: %s", outcome)
	s.Expected = s.Inventory
	s.Case.Owner, s.Case.Level, s.Case.Action = Assay, checks.Intake, checks.Drain
	s.Case.Need = RungScreen
	if s.Case.Evidence == "" {
		s.Case.Evidence = "none"
	}
	s.Screen, s.Want, s.Tries = "", checks.Intake, 0
	s.enter(Screening)
}

// replaced says what hardware is new in now; empty if nothing. A part that is only missing has not been replaced.
func replaced(was, now checks.Inventory) string {
	if was.NodeSerial != "" && now.NodeSerial != "" && was.NodeSerial != now.NodeSerial {
		return "host serial " + now.NodeSerial
	}
	old := certificate.UUIDs(was)
	for _, u := range certificate.UUIDs(now) {
		if !slices.Contains(old, u) {
			return u
		}
	}
	return ""
}
