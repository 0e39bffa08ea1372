package lifecycle

import (
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/certificate"
)

// any applies the rows that hold in every state and reports whether that was all.
func (s *step) any(ev Event) (done bool, err error) {
	if e, ok := ev.(Enrol); ok {
		return true, s.enrol(e)
	}
	if s.State == "" {
		return true, s.illegal(ev, "not under assay's care", "enrol it: assay node enroll "+s.Name)
	}
	if s.State == Retired {
		return false, nil
	}
	switch ev.(type) {
	case SlurmDrained, SlurmReason, SlurmResumed, SlurmUndrained:
		if !s.in.Slurm {
			return true, nil
		}
	}
	switch ev := ev.(type) {
	case Seen:
		return !s.see(ev.Inventory), nil
	case HardFault:
		return oldNews(s.Node, ev.Finding) || !s.acts(ev.Finding, "revoked the certificate and drained"), nil
	case SoftFault:
		return oldNews(s.Node, ev.Finding) || !s.acts(ev.Finding, "suspended the certificate and drained"), nil
	case ResetWanted:
		return oldNews(s.Node, ev.Finding) || !s.acts(ev.Finding, "drained for a GPU reset"), nil
	case Screened:
		return s.match(ev), nil
	case JobsChanged:
		return !s.jobs(ev.Jobs), nil
	case DeadlinePassed:
		return s.Deadline.IsZero() || s.at.Before(s.Deadline), nil
	case Silent:
		// A node that we reboot is silent by our own doing; its deadline watches it.
		if s.State != Remediating || !s.at.Before(s.Deadline) {
			s.Lost = true
		}
		return true, nil
	case Back:
		s.Lost = false
		return true, nil
	case Room:
		if s.Case != nil && s.Case.Out && s.outState() && s.marked(MarkHeldBack) && s.State != Withheld {
			s.redrain()
			return true, nil
		}
		return s.Case == nil || !s.marked(MarkHeldBack), nil
	case EffectEnded:
		return s.effectEnded(ev), nil
	case SlurmDrained:
		return true, s.slurmDrained(ev)
	case SlurmReason:
		return true, s.slurmReason(ev)
	case SlurmResumed:
		s.slurmResumed(ev.User)
		return true, nil
	case SlurmUndrained:
		s.slurmUndrained(ev.User)
		return true, nil
	case OrderHold:
		return true, s.orderHold(ev)
	case OrderUnhold:
		return true, s.orderUnhold(ev)
	case OrderRetire:
		s.retire(ev)
		return true, nil
	case OrderDrain:
		return true, s.orderDrain(ev)
	case OrderResume:
		return true, s.orderResume(ev)
	case OrderCancel:
		return true, s.orderCancel(ev)
	case OrderCase:
		return true, s.orderCase(ev)
	}
	return false, nil
}

func (s *step) enrol(ev Enrol) error {
	switch s.State {
	case "", Retired:
		s.Node = Node{Name: s.Name, LastSerial: s.LastSerial, Version: s.Version, Leaf: ev.Leaf, Adopt: ev.Adopt}
		s.enter(Enrolled)
	case Enrolled:
		s.Adopt = s.Adopt || ev.Adopt
		if ev.Adopt {
			s.Want = checks.NoLevel
		}
	}
	if ev.Leaf != "" {
		s.Leaf = ev.Leaf
	}
	return nil
}

// news reports whether inv shows another boot, driver or hardware than n has, and not one that is past.
func news(n Node, inv checks.Inventory) bool {
	if slices.Contains(n.PastBoots, inv.BootID) && inv.BootID != "" {
		return false
	}
	return inv.BootID != "" && inv.BootID != n.BootID || inv.Driver != "" && inv.Driver != n.Driver ||
		inv.NodeSerial != "" && inv.NodeSerial != n.Inventory.NodeSerial ||
		len(inv.GPUs) > 0 && !slices.Equal(certificate.UUIDs(inv), certificate.UUIDs(n.Inventory))
}

// maxBoots is how many boots back a late report is known for what it is.
const maxBoots = 8

// see takes in what the agent shows. What it could not read is empty, and changes nothing. It reports whether the
// state has to look at it.
func (s *step) see(inv checks.Inventory) bool {
	if inv.BootID != "" && slices.Contains(s.PastBoots, inv.BootID) {
		return false
	}
	if inv.BootID != "" && inv.BootID != s.BootID {
		if s.BootID != "" {
			s.rebooted = true
			s.PastBoots = append(s.PastBoots, s.BootID)
			s.PastBoots = s.PastBoots[max(0, len(s.PastBoots)-maxBoots):]
			s.Screen, s.Observed = "", nil
		}
		s.BootID = inv.BootID
	}
	if inv.Driver != "" {
		s.Driver = inv.Driver
	}
	merged := inv
	merged.Node, merged.BootID, merged.Driver = s.Name, s.BootID, s.Driver
	if inv.NodeSerial == "" {
		merged.NodeSerial = s.Inventory.NodeSerial
	}
	if len(inv.GPUs) == 0 {
		merged.GPUs = s.Inventory.GPUs
	}
	if !sameInventory(s.Inventory, merged) {
		s.Inventory = merged
	}
	if len(s.Expected.GPUs) == 0 && len(s.Inventory.GPUs) > 0 {
		s.Expected = s.Inventory
	}
	if s.Certificate != nil {
		if s.ended = certificate.Ended(*s.Certificate, inv); s.ended != "" {
			s.revoke(s.ended)
			s.unmark(MarkLapsed)
		}
	}
	return true
}

func sameInventory(a, b checks.Inventory) bool {
	return a.Node == b.Node && a.BootID == b.BootID && a.NodeSerial == b.NodeSerial && a.Driver == b.Driver && slices.Equal(a.GPUs, b.GPUs)
}

// oldNews reports whether the finding is from an earlier boot: since then the certificate has ended by itself.
func oldNews(n Node, f checks.Finding) bool {
	return f.BootID != "" && f.BootID != n.BootID && slices.Contains(n.PastBoots, f.BootID)
}

// match ties a screen's end to the one asked for and reports whether it is of no use: of another boot, or the answer
// to a question that no longer stands.
func (s *step) match(ev Screened) (done bool) {
	if ev.Inventory.BootID != "" && ev.Inventory.BootID != s.BootID {
		return true
	}
	if ev.Screen == "" {
		return false
	}
	if s.Screen == "" || s.Screen != ScreenPending && s.Screen != ev.Screen {
		return true
	}
	s.Screen, s.asked = "", true
	return false
}

// passed reports whether the screen proves anything, and how deep: only a pass that says on what boot and GPUs it ran.
func passed(ev Screened) bool {
	return ev.Verdict == checks.Pass && ev.Level != checks.NoLevel && ev.Inventory.BootID != "" && len(ev.Inventory.GPUs) > 0
}

// jobs takes in the node's jobs and reports whether they changed.
func (s *step) jobs(js []JobRef) bool {
	js = slices.Clone(js)
	slices.SortFunc(js, func(a, b JobRef) int { return strings.Compare(a.ID, b.ID) })
	js = slices.CompactFunc(js, func(a, b JobRef) bool { return a.ID == b.ID })
	if slices.Equal(js, s.Jobs) {
		return false
	}
	if len(js) == 0 {
		js = nil
	}
	s.Jobs = js
	return true
}

// effectEnded takes in how our orders to Slurm went; the rest is the states' own.
func (s *step) effectEnded(ev EffectEnded) (done bool) {
	switch ev.Kind {
	case EffectDrain:
		s.drainEnded(ev)
	case EffectResume:
		s.resumeEnded(ev)
	case EffectReason:
		s.reasonEnded(ev)
	case EffectScreen:
		// Its report says how it went. Without one it has told us nothing, and is asked again until it counts as Unknown.
		if ev.Outcome == "done" || s.Screen == "" || s.Screen != ScreenPending && s.Screen != ev.ID {
			return true
		}
		s.Screen, s.asked = "", true
		return false
	default:
		return false
	}
	return true
}
