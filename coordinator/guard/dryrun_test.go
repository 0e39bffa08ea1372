package guard

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks/policy"
)

// A dry run takes nothing, and says what would be taken as if each one before had been.
func TestDryRun(t *testing.T) {
	p := policy.Default().Guard
	p.DryRun = true
	v := New(p, fleet(100), Books{}) // two nodes an hour
	if ok, why := v.Room("gpu001", "s1", "ecc", "drain", t0); ok || why != DryRun {
		t.Errorf("room %v, %q", ok, why)
	}
	wants := []Want{{"gpu001", "s1", "ecc", "drain"}, {"gpu002", "s1", "xid 79", "drain"}, {"gpu003", "s2", "ecc", "suspend"}, {"gpu001", "s1", "ecc", "drain"}}
	got := v.Would(wants, t0)
	if got[0] != "" || got[1] != "" || !strings.HasPrefix(got[2], "fleet hour: 2 of 2") || got[3] != "" {
		t.Errorf("would %q", got)
	}
	if shown := v.Show(t0); shown.Budgets[0].Spent != 0 {
		t.Errorf("a dry run was charged: %+v", shown.Budgets)
	}
	frozen := New(p, fleet(100), Books{}.Freeze("alice", "look", t0))
	if got := frozen.Would(wants[:1], t0); !strings.Contains(got[0], "frozen by alice") {
		t.Errorf("would %q", got)
	}
}
