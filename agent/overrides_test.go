package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
)

// An override of a product holds for the look that shows the product, not from the one after it.
func TestAnOverrideHoldsForTheProductThatIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		name := func(product string) {
			b.hw.change(func(s *catalog.Snapshot) {
				for i := range s.GPUs {
					s.GPUs[i].Name = product
				}
			})
		}
		name("NVIDIA A10")
		b.run()
		defer b.end()
		d := b.desired(1, 5)
		var set policy.Set
		if err := json.Unmarshal([]byte(`{"inventory":{"name":"NVIDIA A10"}}`), &set); err != nil {
			t.Fatal(err)
		}
		d.Policy.Inventory.Name = "NVIDIA H100"
		d.Policy.Overrides = []policy.Override{{Name: "a10", SKU: []string{"A10"}, Set: set}}
		b.desire(d)
		b.wait(time.Minute)
		for _, r := range b.out.take() {
			if r.Verdict == checks.Fail {
				t.Errorf("report %+v", r.Findings)
			}
		}
		// Parts were changed: the override holds no more.
		name("NVIDIA L4")
		b.wait(time.Minute)
		found := false
		for _, r := range b.out.take() {
			for _, f := range r.Findings {
				found = found || f.Verdict == checks.Fail && strings.Contains(f.Reason, `policy wants "NVIDIA H100"`)
			}
		}
		if !found {
			t.Error("the override of another product still holds")
		}
	})
}
