package recovery

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
)

var gpu = checks.GPU{Node: "gpu001", UUID: "GPU-1", Index: 2, PCI: "0000:3b:00.0"}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name    string
		reading Reading
		verdict checks.Verdict
		action  checks.Action
		hard    bool
		reason  string
	}{
		{"none is healthy", Reading{Have: checks.Read, Action: 0}, checks.Pass, checks.None, false, "asks for no recovery"},
		{"reset", Reading{Have: checks.Read, Action: 1}, checks.Fail, checks.ResetGPU, true, "asks to reset the GPU (recovery action 1)"},
		{"reboot", Reading{Have: checks.Read, Action: 2}, checks.Fail, checks.Reboot, true, "asks to reboot the node (recovery action 2)"},
		{"drain peer-to-peer is soft", Reading{Have: checks.Read, Action: 3}, checks.Fail, checks.Drain, false, "drain peer-to-peer traffic (recovery action 3)"},
		{"drain and reset", Reading{Have: checks.Read, Action: 4}, checks.Fail, checks.ResetGPU, true, "drain, then reset the GPU (recovery action 4)"},
		{"the IMEX domain's is named, and nothing concluded", Reading{Have: checks.Read, Action: 5}, checks.Unknown, checks.Watch, false, "recover the IMEX domain (recovery action 5): a person has to look"},
		{"a value newer than we are is not healthy", Reading{Have: checks.Read, Action: 6}, checks.Unknown, checks.Watch, false, "recovery action 6, which is not known here"},
		{"nor is one below all values", Reading{Have: checks.Read, Action: -1}, checks.Unknown, checks.Watch, false, "recovery action -1"},
		{"never asked", Reading{}, checks.Unknown, checks.None, false, "recovery action not read"},
		{"the call failed", Reading{Err: "GPU_IS_LOST", Action: 0}, checks.Unknown, checks.None, false, "not read: GPU_IS_LOST"},
		{"an older driver", Reading{Have: checks.NotSupported}, checks.NotApplicable, checks.None, false, "has no recovery action"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(gpu, tt.reading)
			if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard != tt.hard || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, hard %t, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.verdict, tt.action, tt.hard, tt.reason)
			}
			if f.Check != ID || f.Subject.Key() != "gpu/GPU-1" {
				t.Errorf("a finding of %s about %s", f.Check, f.Subject.Key())
			}
		})
	}
}
