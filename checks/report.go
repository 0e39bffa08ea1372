package checks

import "time"

// A Level is how deep the screen went that a certificate rests on. The order is the order of depth.
type Level uint8

const (
	NoLevel  Level = iota
	QuickMIG       // quick, on a board whose MIG layout hides part of it
	Quick          // the prolog suite
	Standard       // every idle unit within 24 h, or check --suite standard
	Soak           // hot and long
	Intake         // new or repaired hardware
)

var levelNames = [...]string{"", "quick-mig", "quick", "standard", "soak", "intake"}

func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return ""
}

// MarshalText writes the level's name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a level's name; a name it does not know is an error.
func (l *Level) UnmarshalText(b []byte) error {
	for i, n := range levelNames {
		if n == string(b) {
			*l = Level(i)
			return nil
		}
	}
	return &UnknownLevelError{string(b)}
}

// UnknownLevelError is returned for a level name that does not exist.
type UnknownLevelError struct{ Name string }

func (e *UnknownLevelError) Error() string { return "level " + e.Name + ": no such level" }

// Hint says what to write instead.
func (e *UnknownLevelError) Hint() string {
	return "levels are quick-mig, quick, standard, soak and intake"
}

// An Inventory is what hardware a node holds, as last read.
type Inventory struct {
	Node       string `json:"node"`
	BootID     string `json:"boot_id"`
	NodeSerial string `json:"node_serial,omitempty"` // DMI product serial of the host
	Driver     string `json:"driver"`                // kernel driver version, as 550.54.15
	GPUs       []GPU  `json:"gpus"`

	Shows map[string]int64 `json:"shows,omitempty"` // numbers that nodes of one product have in common, by the policy's path; what was not read is missing
}

// Named are the GPUs with the name of their node.
func (i Inventory) Named() []GPU {
	out := make([]GPU, len(i.GPUs))
	for k, g := range i.GPUs {
		g.Node = i.Node
		out[k] = g
	}
	return out
}

// SKU is the product name that most of the GPUs show; of equals, the one of the lowest index. Empty without a GPU that gives
// its name.
func (i Inventory) SKU() string {
	seen, best := map[string]int{}, ""
	for _, g := range i.GPUs {
		seen[g.Name]++
	}
	for _, g := range i.GPUs {
		if g.Name != "" && (best == "" || seen[g.Name] > seen[best]) {
			best = g.Name
		}
	}
	return best
}

// Why says why a report was made.
type Why string

const (
	WhyBackground Why = "background" // the agent's own cycle, or a fault seen in it
	WhyProlog     Why = "prolog"
	WhyEpilog     Why = "epilog"
	WhyScreen     Why = "screen" // asked for by the control plane
)

// A Report is one node's findings at one moment, as sent to the control plane.
type Report struct {
	ID        string    `json:"id"` // unique; a report delivered twice counts once
	Node      string    `json:"node"`
	BootID    string    `json:"boot_id"`
	At        time.Time `json:"at"` // the node's clock; never compared with the control plane's
	Why       Why       `json:"why"`
	Suite     Level     `json:"suite,omitempty"`   // the level that the suite run earns when it passes; NoLevel for a lone fault
	Screen    string    `json:"screen,omitempty"`  // the effect id that asked for this screen
	Job       *Job      `json:"job,omitempty"`     // the job whose hook ran it
	OwnGPU    bool      `json:"own_gpu,omitempty"` // one of that job's own GPUs is missing or lost: it could not run
	Verdict   Verdict   `json:"verdict"`
	Findings  []Finding `json:"findings"`
	Tested    []string  `json:"tested,omitempty"`     // check ids that gave Pass, Fail or NotApplicable
	NotTested []string  `json:"not_tested,omitempty"` // check ids of the suite that gave no answer
	Digest    string    `json:"digest,omitempty"`     // of the suite, with the golden kernels that this program runs in it
	Stale     uint64    `json:"stale,omitempty"`      // serial of the certificate at hand when that is of another suite: it proves nothing
	Inventory Inventory `json:"inventory"`
	Observed  bool      `json:"observed,omitempty"` // made in observe mode: says what would have been done
}

// A Job is a Slurm job as a hook saw it. User-controlled fields are left out on purpose.
type Job struct {
	ID       string `json:"id"`
	Restarts int    `json:"restarts"`
	User     string `json:"user,omitempty"`
	Nodes    int    `json:"nodes,omitempty"`
	GPUs     []int  `json:"gpus,omitempty"` // indices as the driver counts them; nil when the job asks for none
}

// Routine reports whether the report carries no news: nothing failed and nothing was asked for. Routine reports are
// the first to go when the spool is full.
func (r Report) Routine() bool { return r.Verdict != Fail && r.Why == WhyBackground && r.Screen == "" }
