package agent

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A store is the agent's state directory. What cannot be read is logged and taken as absent: every file there only ever
// makes the agent surer, so that losing one makes it more careful, but for the tombstone, whose loss refuses the start.
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

// keptKernel is kernel.json: the last kernel-log record judged, and the faults found that no later certificate has answered.
type keptKernel struct {
	BootID string           `json:"boot_id"`
	Seq    uint64           `json:"seq"`
	Any    bool             `json:"any"` // false: none judged yet; sequence numbers start at 0
	Open   []checks.Finding `json:"open,omitempty"`
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

// load reads a file of the directory into v and reports whether it was there and sound.
func (s store) load(name string, v any) bool {
	found, err := atomicfile.ReadJSON(s.path(name), v)
	if err != nil {
		s.log.Warn("state file is unreadable and is taken as absent", "file", name, "err", err)
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

// tombstone reads the tombstone. One that is there but unreadable is an error: it may void the certificate at hand.
func (s store) tombstone() (*Tombstone, error) {
	var t Tombstone
	found, err := atomicfile.ReadJSON(s.path("tombstone.json"), &t)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, nil
	}
	return &t, nil
}

func (s store) clearTombstone() error { return atomicfile.Remove(s.path("tombstone.json")) }

// open makes the directory and removes what a crash left half-written.
func (s store) open() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	left, err := filepath.Glob(s.path(atomicfile.TempPrefix + "*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range left {
		errs = append(errs, os.Remove(f))
	}
	return errors.Join(errs...)
}
