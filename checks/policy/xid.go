package policy

import (
	"fmt"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// XID holds the rules of package xid that a site may change.
type XID struct {
	Actions map[int]string `json:"actions,omitempty" yaml:"actions"` // by XID: the action instead of the table's

	SameTPC      int      `json:"same_tpc" yaml:"same_tpc"` // processes with an engine exception (13) on one TPC within RepeatWindow and on no other GPU; more is a soft Fail, drain
	SameGPU      int      `json:"same_gpu" yaml:"same_gpu"` // the same for page faults (31) on one GPU
	RepeatWindow Duration `json:"repeat_window" yaml:"repeat_window"`

	NVMLEvents bool `json:"nvml_events" yaml:"nvml_events"` // XIDs that NVML raises count where the kernel log does not tell of them
}

// defaultXID is milder than NVIDIA/NVSentinel, which runs a diagnostic on the second within 24 h: somebody who looks for a
// mistake in a program makes the same one many times, and on one GPU. A TPC is harder to hit twice by accident.
func defaultXID() XID {
	return XID{SameTPC: 3, SameGPU: 20, RepeatWindow: Duration(24 * time.Hour), NVMLEvents: true}
}

func (v *validator) xid(x XID) {
	atLeast(v, "xid.same_tpc", x.SameTPC, 1)
	atLeast(v, "xid.same_gpu", x.SameGPU, 1)
	v.within("xid.repeat_window", x.RepeatWindow, time.Second, 7*day)
	for code, name := range x.Actions {
		path := fmt.Sprintf("xid.actions.%d", code)
		if code < 1 {
			v.add(path, "want an XID, 1 or more")
		}
		var a checks.Action
		if err := a.UnmarshalText([]byte(name)); err != nil {
			v.add(path, "%v", err)
		}
	}
}
