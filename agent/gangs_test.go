package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A node that broke a moment ago, and that no cycle has looked at since, holds a gang up at its barrier.
func TestAGangIsCheckedAfresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.desire(b.desired(1, 5))
		b.wait(31 * time.Second)
		o := wire.GangOrder{Launch: "12.1", Job: 12, Nodes: 2, GPUIndices: []int{0, 2}}
		if ok, why, serial := b.agent.CheckGang(t.Context(), o); !ok || serial != 5 {
			t.Fatalf("a healthy node: %v, %q, certificate %d", ok, why, serial)
		}
		b.hw.change(func(s *catalog.Snapshot) { s.GPUs[1].Call.Lost = true }) // none of the gang's own
		if r := b.prolog(); r.Exit != 0 {
			t.Fatalf("the prolog reads afresh too: %+v", r)
		}
		b.permit.set(func(p *fakePermits) { p.ans = wire.PermitAnswer{Granted: false, Reason: "no room"} })
		if ok, why, _ := b.agent.CheckGang(t.Context(), o); ok || !strings.Contains(why, "lost") {
			t.Errorf("a GPU was lost: %v, %q", ok, why)
		}
	})
}
