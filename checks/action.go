package checks

import "fmt"

// An Action is what a finding asks for, from mild to severe. The order is the order of severity:
// of two actions on one node the greater one is taken.
type Action uint8

const (
	None       Action = iota
	Watch             // count it, alert on it; no state changes
	RestartApp        // the job's own fault; the hardware is not suspected
	ResetGPU          // a GPU reset clears it
	Reboot            // a node reboot clears it
	FixConfig         // a person changes a setting
	Drain             // take the node out and look
	RMA               // the part goes back to the vendor
)

var actionNames = [...]string{"none", "watch", "restart_app", "reset_gpu", "reboot", "fix_config", "drain", "rma"}

func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("action(%d)", a)
}

// MarshalText writes the action's name.
func (a Action) MarshalText() ([]byte, error) {
	if int(a) >= len(actionNames) {
		return nil, fmt.Errorf("action %d has no name", a)
	}
	return []byte(actionNames[a]), nil
}

// UnmarshalText reads an action's name. A name it does not know is an error.
func (a *Action) UnmarshalText(b []byte) error {
	for i, n := range actionNames {
		if n == string(b) {
			*a = Action(i)
			return nil
		}
	}
	return fmt.Errorf("action %q: want one of %v", b, actionNames)
}

// Harmless reports whether the action leaves the hardware unsuspected: a finding with a harmless
// action is never a Fail.
func (a Action) Harmless() bool { return a <= RestartApp }
