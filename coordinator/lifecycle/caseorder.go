package lifecycle

import "time"

// What a person may order of an open case.
const (
	CaseTake   = "take"   // it is mine: automatic steps wait until it is given back
	CaseGive   = "give"   // it is assay's again
	CaseExtend = "extend" // look at it again at a later time
	CaseClose  = "close"  // nothing is wrong; only where the node was not taken out for it
)

// extendMost is how far ahead a case's deadline may be put.
const extendMost = 30 * 24 * time.Hour

func (s *step) orderCase(ev OrderCase) error {
	c := s.Case
	if c == nil || ev.Case != c.ID {
		return s.illegal(ev, "case "+ev.Case+" is not open on it", "`assay case list` shows what is open")
	}
	switch ev.Verb {
	case CaseTake:
		return s.takeCase(ev)
	case CaseGive:
		if c.Owner == Assay || c.Owner == OnCall {
			return s.illegal(ev, "nobody has taken case "+c.ID, "")
		}
		c.Owner = Assay
		if c.Rung == RungPerson && c.Due == "" {
			c.Owner = OnCall
		}
		s.note("given back by %s: %s", ev.By, ev.Reason)
	case CaseExtend:
		return s.extendCase(ev)
	case CaseClose:
		if c.Out || needsCase(s.State) {
			return s.illegal(ev, "the node is out of service for case "+c.ID, "a clean "+c.Level.String()+" screen ends it: assay node resume "+s.Name+" --reason TEXT")
		}
		s.note("closed by %s: %s", ev.By, ev.Reason)
		s.close("closed by " + ev.By + ": " + ev.Reason)
	default:
		return s.illegal(ev, "no such order on a case: "+ev.Verb, "take, give, extend and close are")
	}
	return nil
}

// takeCase makes a person the owner. A rung under way goes on; the next waits for him.
func (s *step) takeCase(ev OrderCase) error {
	if s.Case.Owner == ev.By {
		return nil
	}
	s.note("taken by %s from %s: %s", ev.By, s.Case.Owner, ev.Reason)
	s.Case.Owner = ev.By
	return nil
}

func (s *step) extendCase(ev OrderCase) error {
	switch {
	case s.State == Remediating || s.Case.Evidence == "collecting":
		return s.illegal(ev, "its deadline is that of the step under way", "extend it when that has ended")
	case !ev.Until.After(s.at):
		return s.illegal(ev, "the deadline would have passed already", "give a time to come")
	case ev.Until.Sub(s.at) > extendMost:
		return s.illegal(ev, "a case may not be put off for more than 30 days", "give an earlier time")
	}
	if ev.Until.Equal(s.Deadline) {
		return nil
	}
	s.note("deadline moved from %s to %s by %s: %s", stamp(s.Deadline), stamp(ev.Until), ev.By, ev.Reason)
	s.Deadline = ev.Until
	return nil
}
