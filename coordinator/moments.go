package coordinator

import "github.com/assay-gpu/assay/coordinator/killpoint"

// moments names what a transaction makes durable about effects, for tests that kill the process around it: "record/drain"
// and "tick/drain", each kind once, in the order of the effects.
func (t *tx) moments() []string {
	if !killpoint.Enabled {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for _, id := range sortedKeys(t.effects) {
		name := ""
		stored, was := t.base.effects[id]
		switch e := t.effects[id]; {
		case e != nil:
			name = "record/" + e.Kind
		case was:
			name = "tick/" + stored.Kind
		}
		if name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// here marks the moment around a commit, and those of its effects.
func here(effects []string, when string) {
	killpoint.Here("commit/" + when)
	for _, name := range effects {
		killpoint.Here(name + "/" + when)
	}
}
