package lifecycle

import (
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// A deadline is what the policy says, also when that is short; none is so short that the state spins.
func TestDeadlineIsThePolicys(t *testing.T) {
	for _, tt := range []struct {
		policy, want time.Duration
	}{
		{24 * time.Hour, 24 * time.Hour}, {30 * time.Second, 30 * time.Second}, {time.Second, time.Second}, {0, leastWait}, {time.Millisecond, leastWait},
	} {
		w := newWorld()
		w.in.Policy.Lifecycle.DrainDeadline = policy.Duration(tt.policy)
		w.node = Node{Name: "gpu001", State: Certified, BootID: "b", Jobs: []JobRef{{ID: "7", Nodes: 1}}}
		f := checks.Finding{Check: "xid", Code: 79, Verdict: checks.Fail, Hard: true, Action: checks.Reboot, Subject: checks.Subject{Kind: checks.KindGPU, Node: "gpu001"}}
		if _, _, err := w.step(HardFault{At: At{Time: w.now}, Finding: f}); err != nil {
			t.Fatal(err)
		}
		if got := w.node.Deadline.Sub(w.now); w.node.State != Draining || got != tt.want {
			t.Errorf("drain_deadline %v: %s until %v from now, want draining until %v", tt.policy, w.node.State, got, tt.want)
		}
	}
}
