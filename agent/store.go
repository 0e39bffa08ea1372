package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A store is the agent's state directory. What cannot be read is logged and taken as absent: every file there only ever
// makes the agent surer, so that losing one makes it more careful. The tombstone is the other way round, and has rules of its own.
type store struct {
	dir string
	log *slog.Logger
}

// keptDesired is desired.json: the last desired state with the boot clock of its certificate's ends.
type keptDesired struct {
	BootID     string        `json:"boot_id"`     // the boot in which it was received
	Received   time.Duration `json:"received"`    // boot clock, nanoseconds
	Expires    time.Duration `json:"expires"`     // boot clock, nanoseconds
	GraceUntil time.Duration `json:"grace_until"` // boot clock, nanoseconds
	Desired    wire.Desired  `json:"desired"`
}

// keptClock is contact.json: when the control plane was last heard.
type keptClock struct {
	BootID string        `json:"boot_id"`
	At     time.Duration `json:"at"` // boot clock, nanoseconds
}

// keptKernel is kernel.json: the last kernel-log record judged, the faults found that no later certificate has answered, and
// what the driver told beside the log.
type keptKernel struct {
	BootID string           `json:"boot_id"`
	Seq    uint64           `json:"seq"`
	Any    bool             `json:"any"` // false: none judged yet; sequence numbers start at 0
	Open   []checks.Finding `json:"open,omitempty"`
	Events []DriverEvent    `json:"events,omitempty"` // oldest first
}

// KnownGPUs are the node's GPUs as an earlier run in stateDir knew them: by enrolment, else as last seen.
func KnownGPUs(stateDir string) []checks.GPU {
	s := store{stateDir, slog.New(slog.DiscardHandler)}
	var d keptDesired
	if s.load("desired.json", &d) && d.Desired.Expected != nil && len(d.Desired.Expected.GPUs) > 0 {
		return d.Desired.Expected.GPUs
	}
	var inv checks.Inventory
	s.load("seen.json", &inv)
	return inv.GPUs
}

func (s store) path(name string) string { return filepath.Join(s.dir, name) }

// load reads a file of the directory into what v points to and reports whether it was there and sound. If not, *v is zero.
func (s store) load(name string, v any) bool {
	found, err := atomicfile.ReadJSON(s.path(name), v)
	if err != nil {
		s.log.Warn("state file is unreadable and is taken as absent", "file", name, "err", err)
		reflect.ValueOf(v).Elem().SetZero() // part of it may have been read
	}
	return found && err == nil
}

// save writes a file of the directory, durably. A failure is logged and returned.
func (s store) save(name string, v any) error {
	err := atomicfile.WriteJSON(s.path(name), v)
	if err != nil {
		s.log.Error("state file not written", "file", name, "err", err)
	}
	return err
}

// open makes the directory and removes what a crash left half-written. A disk that refuses that is no reason not to run.
func (s store) open() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	left, err := filepath.Glob(s.path(atomicfile.TempPrefix + "*"))
	if err != nil {
		return err
	}
	for _, f := range left {
		if err := os.Remove(f); err != nil {
			s.log.Warn("leftover of a crash is not removed", "file", f, "err", err)
		}
	}
	return nil
}
