package lifecycle

import (
	"fmt"
	"strconv"
)

// draining: no new jobs; those on it end by themselves, or as policy says at the deadline.
func (s *step) draining(ev Event) error {
	switch ev := ev.(type) {
	case HardFault:
		s.secondFault(ev)
	case SoftFault:
		s.fault(ev.Finding)
	case ResetWanted:
		s.fault(ev.Finding)
	case JobsChanged:
		s.quarantineIfEmpty()
	case DeadlinePassed:
		s.drainDeadline()
	case OrderRMA:
		s.sendBack(ev)
	case OrderRepaired:
		return s.illegal(ev, "no part of it is with the vendor", "")
	}
	return nil
}

// secondFault adds reason and severest action; it does not restart the drain. What certificate a drain without a
// hard fault had left is revoked.
func (s *step) secondFault(ev HardFault) {
	wasHard := s.Case.Hard
	s.fault(ev.Finding)
	s.revoke(describe(ev.Finding))
	if !wasHard && s.Case.Hard {
		s.write(Spend{Node: s.Name, Leaf: s.Leaf, Reason: s.Case.Cause, Step: "revoke", At: s.at, Hard: true})
		s.restate()
	}
}

// drainDeadline: the drain is ordered again (in settle) if it does not stand; jobs are dealt with as policy says.
func (s *step) drainDeadline() {
	s.rearm()
	if s.marked(MarkOverridden) {
		return
	}
	if s.in.Slurm && !s.DrainedByUs && !s.foreign() {
		s.RedrainAfter = s.at
		return
	}
	waiting := 0
	for _, j := range s.Jobs {
		what := s.in.Policy.Lifecycle.DrainJob
		if j.Nodes > 1 {
			what = s.in.Policy.Lifecycle.DrainGang
		}
		kind := map[string]string{"requeue": EffectRequeueJob, "kill": EffectKillJob}[what]
		ok, _ := s.room("kill")
		// A planned reset or a person's drain is no reason to end somebody's job.
		if kind == "" || !ok || s.Case.Planned || s.Case.Cause == CauseOrder {
			waiting++
			continue
		}
		s.spend("kill")
		args := map[string]string{"job": j.ID, "nodes": strconv.Itoa(j.Nodes), "case": s.Case.ID}
		if s.in.Slurm {
			args["restarts"] = strconv.Itoa(j.Restarts) // a later run of the job, maybe on other nodes, is not meant
		}
		s.effect(kind, args)
	}
	if waiting > 0 {
		s.page("drain_deadline", "drain_deadline "+s.Name, fmt.Sprintf("drain not complete after %s: %d jobs still on it",
			s.in.Policy.Lifecycle.DrainDeadline.D(), waiting))
	}
	s.quarantineIfEmpty()
}
