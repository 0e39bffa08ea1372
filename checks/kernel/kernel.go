// Package kernel judges the kernel's own opinion of itself, its taint flags.
//
// Flags are for life: what set one may be over, but the kernel was told not to trust itself since, and only a boot clears
// it. Those that every NVIDIA driver sets (P, O, E) say nothing. Source: Linux Documentation/admin-guide/tainted-kernels.rst.
package kernel

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/tally"
)

// ID is the check's catalog id.
const ID = "kernel"

// A Reading is the kernel's taint.
type Reading struct {
	Have  checks.Availability `json:"have"`
	Err   string              `json:"err,omitempty"`
	Taint uint64              `json:"taint"` // /proc/sys/kernel/tainted
}

// flags are the letters of the taint bits, lowest first, and what they say.
var flags = []struct {
	letter byte
	means  string
}{
	{'P', "a proprietary module"}, {'F', "a module was forced in"}, {'S', "the processor is out of specification"}, {'R', "a module was forced out"},
	{'M', "a machine check"}, {'B', "a bad page"}, {'U', "asked for by a user"}, {'D', "the kernel has died once (oops)"}, {'A', "ACPI table overridden"},
	{'W', "a kernel warning"}, {'C', "a staging driver"}, {'I', "a firmware workaround"}, {'O', "a module from outside"}, {'E', "an unsigned module"},
	{'L', "a soft lockup"}, {'K', "a live patch"}, {'X', "the distribution's own"}, {'T', "randomised structures"}, {'N', "an in-kernel test"}, {'J', "a firmware-changing command"},
}

// Letters are those of all flags, lowest bit first.
func Letters() string {
	var b strings.Builder
	for _, f := range flags {
		b.WriteByte(f.letter)
	}
	return b.String()
}

// Judge does no I/O.
func Judge(r Reading, p policy.Kernel) checks.Finding {
	if r.Have != checks.Read {
		return tally.Unread(ID, "kernel taint", r.Err)
	}
	t := tally.New(ID)
	var set []byte
	for bit, f := range flags {
		if r.Taint&(1<<bit) == 0 {
			continue
		}
		set = append(set, f.letter)
		switch {
		case strings.IndexByte(p.FailTaints, f.letter) >= 0:
			t.Fault(checks.Reboot, "the kernel is tainted %c: %s", f.letter, f.means)
		case strings.IndexByte(p.WatchTaints, f.letter) >= 0:
			t.Watch("the kernel is tainted %c: %s", f.letter, f.means)
		}
	}
	if r.Taint>>len(flags) != 0 {
		t.Watch("the kernel is tainted by a flag not known here (%d)", r.Taint)
	}
	return t.Finding(fmt.Sprintf("tainted=%d", r.Taint), fmt.Sprintf("taint %q, none of it of concern", set))
}
