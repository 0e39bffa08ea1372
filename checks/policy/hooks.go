package policy

import "time"

// Hooks holds what prolog and epilog may do.
type Hooks struct {
	Budget       Duration `json:"budget" yaml:"budget"`               // the quick suite's, of a hard 20 s
	PermitWait   Duration `json:"permit_wait" yaml:"permit_wait"`     // for an answer to exit 1; without one only a hard fault exits 1
	OfflineMax   Duration `json:"offline_max" yaml:"offline_max"`     // how long a certificate alone passes hooks without the control plane
	SnapshotAge  Duration `json:"snapshot_age" yaml:"snapshot_age"`   // oldest clean snapshot the fast path accepts
	FailMode     string   `json:"fail_mode" yaml:"fail_mode"`         // "open": Unknown passes; "closed": Unknown asks for a permit to exit 1
	ReleaseTries int      `json:"release_tries" yaml:"release_tries"` // times a job held by our own exit is released
}

func defaultHooks() Hooks {
	return Hooks{
		Budget: 14 * second, PermitWait: 4 * second, OfflineMax: 4 * hour, SnapshotAge: 60 * second, FailMode: "open", ReleaseTries: 2,
	}
}

func (v *validator) hooks(h Hooks) {
	// slurmd waits as long as it is told to, but a node whose prolog takes longer than 20 s holds up every job start.
	v.within("hooks.budget", h.Budget, time.Second, 18*time.Second)
	v.within("hooks.permit_wait", h.PermitWait, 0, 18*time.Second)
	if sum := h.Budget.D() + h.PermitWait.D(); sum > 19*time.Second && h.Budget.D() <= 18*time.Second && h.PermitWait.D() <= 18*time.Second {
		v.add("hooks.permit_wait", "%s after a suite of %s: together more than the 19s that a hook waits", h.PermitWait, h.Budget)
	}
	v.within("hooks.offline_max", h.OfflineMax, 0, 30*day)
	v.within("hooks.snapshot_age", h.SnapshotAge, time.Second, time.Hour)
	oneOf(v, "hooks.fail_mode", h.FailMode, "open", "closed")
	atLeast(v, "hooks.release_tries", h.ReleaseTries, 0)
}
