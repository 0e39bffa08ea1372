package fabric

import (
	"fmt"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/tally"
)

// A Manager is whether the service runs that sets up the fabric of a node's own NVSwitches. A rack-scale node (GB200) has no
// switch of its own, nor the service.
type Manager struct {
	Have     checks.Availability `json:"have"` // NotSupported: the node has no NVSwitch that its driver knows
	Err      string              `json:"err,omitempty"`
	Switches int                 `json:"switches,omitempty"`
	Running  bool                `json:"running,omitempty"` // nv-fabricmanager is a process, or its port listens
}

// JudgeManager judges the node. The fault is soft: a fabric that has been set up carries its traffic on without the service,
// until a GPU is reset or a link fails.
func JudgeManager(m Manager, p policy.Fabric) checks.Finding {
	f := checks.Finding{Check: ID, Subject: checks.Subject{Kind: checks.KindNode}}
	switch {
	case m.Have == checks.NotSupported:
		f.Verdict, f.Reason = checks.NotApplicable, "no NVSwitch, and so no fabric manager"
		return f
	case m.Have != checks.Read:
		return tally.Unread(ID, "fabric manager", m.Err)
	}
	t := tally.New(ID)
	if !m.Running {
		if p.RequireManager {
			t.Fault(checks.FixConfig, "the fabric manager does not run on a node with %d NVSwitches: start nvidia-fabricmanager", m.Switches)
		} else {
			t.Watch("the fabric manager does not run on a node with %d NVSwitches", m.Switches)
		}
	}
	return t.Finding(fmt.Sprintf("switches=%d running=%t", m.Switches, m.Running), "the fabric manager runs")
}
