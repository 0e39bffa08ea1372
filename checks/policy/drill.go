package policy

import "time"

// Drill says how often a made-up fault is sent through the whole chain, from a node's rules to the pager, and how long it
// may take to come back.
type Drill struct {
	Every  Duration `json:"every" yaml:"every"`   // between drills that begin by themselves; 0: none does
	Within Duration `json:"within" yaml:"within"` // from its beginning to the end of its last step; then it has failed
}

// defaultDrill has no drill begin by itself. A drill waits for one heartbeat and one page, which together take 15 s at most.
func defaultDrill() Drill { return Drill{Within: 2 * minute} }

func (v *validator) drill(d Drill) {
	if d.Every != 0 {
		v.within("drill.every", d.Every, 10*time.Minute, 30*day)
	}
	v.within("drill.within", d.Within, 10*time.Second, time.Hour)
	if d.Every != 0 && d.Every.D() <= d.Within.D() {
		v.add("drill.every", "%s: one drill has %s (drill.within) and may still be on", d.Every, d.Within)
	}
}
