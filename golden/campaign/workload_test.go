package campaign

import (
	"bytes"
	"slices"
	"testing"

	"github.com/assay-gpu/assay/golden/ptxvm"
)

// The workloads are ten, and give the same bytes whatever the order in which things happen: what differs is the fault's.
func TestWorkloadsGiveTheSameUnderAnyOrder(t *testing.T) {
	ws, err := loadWorkloads(2)
	if err != nil || len(ws) != 10 {
		t.Fatalf("%d workloads: %v", len(ws), err)
	}
	for _, w := range ws {
		var first []byte
		for seed := range uint64(3) {
			d := ptxvm.NewDevice(ptxvm.Config{SMs: 2, Capability: 90, Seed: seed, SharedSM: 16 << 10, Races: true, Hostile: seed > 0})
			got, err := w.run(d, 2, workloadSteps)
			if err != nil {
				t.Fatalf("%s: %v", w.name, err)
			}
			if first == nil {
				first = got
			}
			if !bytes.Equal(got, first) {
				t.Errorf("%s: seed %d gives other bytes", w.name, seed)
			}
		}
		if len(slices.Compact(slices.Sorted(slices.Values(first)))) < 128 {
			t.Errorf("%s writes hardly anything", w.name)
		}
	}
}
