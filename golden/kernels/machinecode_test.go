package kernels_test

import (
	"testing"

	"github.com/assay-gpu/assay/golden/cubin"
	"github.com/assay-gpu/assay/golden/kernels"
)

// Whoever changes a kernel has its machine code made and audited anew.
func TestTheMachineCodeIsOfThisPTX(t *testing.T) {
	for _, k := range kernels.All() {
		for _, target := range cubin.Targets(k) {
			if _, why := cubin.For(k, target.Capability); why != "" {
				t.Errorf("%s for %s: %s: run make golden-cubins", k.ID, target.Name, why)
			}
		}
	}
}
