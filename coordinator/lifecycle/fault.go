package lifecycle

import (
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// noEnd is the end of a mark that stands until cleared.
var noEnd time.Time

// acts reports whether findings of the check may take capacity. In observe mode it notes, once a boot, what would
// have been done.
func (s *step) acts(f checks.Finding, would string) bool {
	switch s.in.Policy.ModeOf(f.Check) {
	case policy.Act:
		return true
	case policy.Observe:
		key := Cause(f) + " " + f.Subject.Key() + " " + f.Action.String()
		for _, o := range s.Observed {
			if o == key {
				return false
			}
		}
		if len(s.Observed) < maxFaults {
			s.Observed = append(s.Observed, key)
			s.note("would have: %s: %s", would, describe(f))
		}
	}
	return false
}

// Counted reports whether ev is a fault that counts towards a storm, and under what reason. A storm counts faults, not
// drains, so one that is only observed counts as well. Not so one of an earlier boot, one on a node that is out of our care
// or waits for its vendor, and one of a check that is off.
func Counted(n Node, ev Event, p policy.Policy) (reason string, ok bool) {
	var f checks.Finding
	switch ev := ev.(type) {
	case HardFault:
		f = ev.Finding
	case SoftFault:
		f = ev.Finding
	default:
		return "", false
	}
	switch n.State {
	case "", Retired, RMA:
		return "", false
	}
	if oldNews(n, f) || p.ModeOf(f.Check) == policy.Off {
		return "", false
	}
	return Cause(f), true
}

// hardFault is a hard fault on a node that may still hold a certificate: it goes first, in this same step.
func (s *step) hardFault(f checks.Finding, own bool) {
	wasHard := s.Case != nil && s.Case.Hard
	s.fault(f)
	s.out(f, wasHard, own)
}

// out revokes, counts and takes the node out for its case.
func (s *step) out(f checks.Finding, counted, own bool) {
	s.revoke(describe(f))
	if !counted {
		s.write(Spend{Node: s.Name, Leaf: s.Leaf, Reason: s.Case.Cause, Step: "revoke", At: s.at, Hard: true})
	}
	s.Screen, s.Want, s.Tries = "", checks.NoLevel, 0
	s.unmark(MarkLapsed)
	s.takeOut(own)
}

// takeOut moves the node to draining if it is out already, if the guard has room, or if forced; else to withheld.
func (s *step) takeOut(forced bool) {
	switch {
	case s.Case.Out || s.foreign():
		s.Case.Out = true
		s.restate()
	default:
		ok, why := s.room("drain")
		if !ok && !forced {
			s.withhold(why)
			return
		}
		st := "drain"
		if !ok {
			st = "refuse"
		}
		s.spend(st)
		s.drain()
	}
	s.unmark(MarkHeldBack)
	s.enter(Draining)
	s.quarantineIfEmpty()
}

func (s *step) withhold(why string) {
	s.mark(MarkHeldBack, noEnd)
	s.Want = s.Case.Level
	s.note("held back: %s", why)
	if s.State != Withheld {
		s.page("withheld", "withheld "+s.Case.Cause, s.Reasons[0]+"; certificate revoked, not drained: "+why)
	}
	s.enter(Withheld)
}

// softFault is a soft fault on a node that is in service.
func (s *step) softFault(f checks.Finding) {
	if s.fault(f) {
		s.suspendIfRoom()
	}
}

// suspendIfRoom makes a node suspect: certificate suspended, drained by us, retest due. Without room nothing changes
// but the mark.
func (s *step) suspendIfRoom() {
	if !s.foreign() {
		ok, why := s.room("suspend")
		if !ok {
			s.holdBack(why)
			return
		}
		s.spend("suspend")
		s.drain()
	}
	s.Case.Out = true
	s.Suspended = s.Certificate != nil
	s.unmark(MarkHeldBack)
	s.Screen, s.Want, s.Tries = "", s.Case.Level, 0
	s.enter(Suspect)
}

// planReset drains a node whose GPU waits for a reset, if the guard has room.
func (s *step) planReset() {
	if !s.foreign() {
		ok, why := s.room("drain")
		if !ok {
			s.holdBack(why)
			return
		}
		s.spend("drain")
		s.drain()
	}
	s.Case.Out = true
	s.Suspended = s.Certificate != nil
	s.unmark(MarkHeldBack)
	s.Screen, s.Want = "", checks.NoLevel
	s.enter(Draining)
	s.quarantineIfEmpty()
}

func (s *step) holdBack(why string) {
	if _, ok := s.Marks[MarkHeldBack]; ok {
		return
	}
	s.mark(MarkHeldBack, noEnd)
	s.note("held back: %s", why)
	if !s.Case.Planned {
		s.Want = max(s.Want, s.Case.Level)
	}
}

func (s *step) room(step string) (bool, string) {
	if s.in.Guard == nil {
		return false, "no guard"
	}
	return s.in.Guard.Room(s.Name, s.Leaf, s.Case.Cause, step, s.at)
}

func (s *step) spend(step string) {
	s.write(Spend{Node: s.Name, Leaf: s.Leaf, Reason: s.Case.Cause, Step: step, At: s.at})
}

func (s *step) revoke(reason string) {
	if s.Certificate == nil {
		s.Suspended = false
		return
	}
	s.write(DeleteCertificate{Node: s.Name, Serial: s.Certificate.Serial, Reason: reason})
	s.Certificate, s.Suspended = nil, false
}

// failed is a screen's Fail on a node in service: its worst finding that may act decides.
func (s *step) failed(ev Screened) {
	f, ok := s.worst(ev)
	switch {
	case !ok:
	case f.HardFault():
		s.hardFault(f, false)
	default:
		s.softFault(f)
	}
}

// worst is the screen's finding that decides, among those that may act; false if none may.
func (s *step) worst(ev Screened) (checks.Finding, bool) {
	var acting []checks.Finding
	for _, f := range ev.Findings {
		if f.Verdict == checks.Fail && !f.Secondary && s.acts(f, "fail the "+ev.Level.String()+" screen") {
			acting = append(acting, f)
		}
	}
	if f, ok := checks.Worst(acting); ok {
		return f, true
	}
	if len(ev.Findings) > 0 {
		return checks.Finding{}, false
	}
	f := checks.Finding{Check: "screen", Subject: checks.Subject{Kind: checks.KindNode, Node: s.Name}, Verdict: checks.Fail,
		Action: checks.Drain, Reason: strings.TrimSpace(ev.Level.String() + " screen failed and named no finding")}
	return f, s.acts(f, "fail the screen")
}
