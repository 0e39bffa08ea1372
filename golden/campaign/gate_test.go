package campaign

import (
	"testing"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/netlist"
)

// What the suite's operands show of a unit's gates: nearly all of what matters to a workload, and less without the kernel
// that is there for the unit.
func TestGateFaults(t *testing.T) {
	grade := func(models []string, only ...string) []GateLine {
		r, err := New(Options{Kernels: only, Size: golden.Reduced, Capability: 90, Seed: 1, SMs: 2})
		if err != nil {
			t.Fatal(err)
		}
		tr, err := r.Trace(0, 5, 512, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out []GateLine
		for _, name := range models {
			m, _ := netlist.Lookup(name)
			out = append(out, tr.Grade(m))
		}
		return out
	}
	lines := grade([]string{"mad32", "shift"}, "k01_imad", "k03_mixed")
	for _, l := range lines {
		if l.Operations == 0 || l.Workloads == 0 || l.Stuck.Counted.Rate < 0.9 || l.Late.Counted.Rate < 0.8 || l.Stuck.Counted.Of < 500 {
			t.Errorf("%s: %d operations, stuck %+v, late %+v", l.Netlist, l.Operations, l.Stuck.Counted, l.Late.Counted)
		}
	}
	without := grade([]string{"mad32"}, "k03_mixed")[0]
	if lines[0].Only["k01_imad"] == 0 || without.Stuck.All.Found >= lines[0].Stuck.All.Found {
		t.Errorf("k01_imad shows %d faults alone; without it %d are found, with it %d", lines[0].Only["k01_imad"], without.Stuck.All.Found, lines[0].Stuck.All.Found)
	}
}
