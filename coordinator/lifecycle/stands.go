package lifecycle

import (
	"slices"
	"strconv"
)

// Stands reports whether effect e, recorded under id, is still wanted by the node as it is now; if not, why. The
// coordinator asks just before it carries an effect out, and ends one that does not stand as skipped.
func Stands(n Node, e Effect, id string) (ok bool, why string) {
	if e.BootID != "" && n.BootID != "" && e.BootID != n.BootID {
		return false, "the node has booted since"
	}
	rung := ""
	if n.Case != nil && n.State == Remediating {
		rung = n.Case.Rung
	}
	switch e.Kind {
	case EffectDrain:
		return n.DrainedByUs, "the drain is not ours to make any more" // an older reason is put right by the effect after it
	case EffectResume:
		return n.ResumePending, "no resume is pending"
	case EffectReason:
		return n.DrainedByUs && n.DrainReason == e.Args["reason"], "the drain or its reason is another"
	case EffectResetGPU:
		return rung == RungReset, "no reset is due"
	case EffectReboot:
		return rung == RungReboot, "no reboot is due"
	case EffectPowerCycle:
		return rung == RungPowerCycle, "no power cycle is due"
	case EffectScreen:
		return n.Screen == id, "another screen, or none, is wanted"
	case EffectEvidence:
		return n.Case != nil && n.Case.Evidence == "collecting", "evidence is not being gathered"
	case EffectRequeueJob, EffectKillJob:
		gone := !slices.ContainsFunc(n.Jobs, func(j JobRef) bool {
			restarts, given := e.Args["restarts"]
			return j.ID == e.Args["job"] && (!given || restarts == strconv.Itoa(j.Restarts))
		})
		return n.State == Draining && !gone, "the node is not draining, or the job is gone"
	}
	return true, ""
}
