package lifecycle

import (
	"fmt"
	"slices"
	"strings"

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

// rmaIfDue opens the RMA by policy, in a person's place, once the ladder has ended with him: two checks found one part bad
// independently, and the case's action is rma. What makes a rung wait makes this wait.
func (s *step) rmaIfDue() {
	if s.State != Quarantined || s.Case == nil || s.Case.Rung != RungPerson || s.Case.Due != "" || s.Case.Action != checks.RMA {
		return
	}
	part, by := s.confirmed()
	if !s.in.Policy.Lifecycle.AutoRMA || part == "" || s.rungWaits() != "" {
		return
	}
	s.sendBack(OrderRMA{At: At{s.at}, By: Assay, Reason: part + " found bad by " + strings.Join(by, " and ")})
	s.Case.Owner = OnCall // somebody has to send it in
	s.page("rma_opened", "rma_opened "+s.Name, "RMA opened: "+s.Reasons[0]+"; "+part+" found bad by "+strings.Join(by, " and "))
}

// confirmed names a part that two checks or more found bad since it was last repaired, and which; empty if there is none.
// Slurm's word and a screen that names nothing are no check of a part.
func (s *step) confirmed() (part string, by []string) {
	found := map[string][]string{}
	for _, f := range s.Case.Faults {
		cause, part, ok := cutLast(f)
		check, _, _ := strings.Cut(cause, " ")
		if !ok || part == string(checks.KindNode) || !slices.Contains(s.Case.Sources, check) || slices.Contains(found[part], check) {
			continue
		}
		if found[part] = append(found[part], check); len(found[part]) == 2 {
			return part, found[part]
		}
	}
	return "", nil
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, ' ')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

func (s *step) repaired(outcome string) {
	s.note("repaired: %s", outcome)
	s.Expected = s.Inventory
	s.Case.Owner, s.Case.Level, s.Case.Action = Assay, checks.Intake, checks.Drain
	s.Case.Need, s.Case.Sources = RungScreen, nil
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
