package coordinator

import (
	"testing"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A person who takes a risk upon himself takes it on a node that still drains, too.
func TestResumeOrder(t *testing.T) {
	at := lifecycle.At{Time: noon}
	for _, tt := range []struct {
		state lifecycle.State
		risk  string
		want  lifecycle.Event
	}{
		{lifecycle.Draining, "", lifecycle.OrderCancel{At: at, By: "alice", Reason: "swapped"}},
		{lifecycle.Draining, lifecycle.RiskNoCertificate, lifecycle.OrderResume{At: at, By: "alice", Reason: "swapped", AcceptRisk: lifecycle.RiskNoCertificate}},
		{lifecycle.Quarantined, "", lifecycle.OrderResume{At: at, By: "alice", Reason: "swapped"}},
	} {
		got := resumeOrder(lifecycle.Node{Name: "n", State: tt.state}, at, "alice", wire.NodeVerb{Reason: "swapped", AcceptRisk: tt.risk})
		if got != tt.want {
			t.Errorf("%s, risk %q: %v, want %v", tt.state, tt.risk, got, tt.want)
		}
	}
}
