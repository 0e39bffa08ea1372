package dcgm

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// Where there is no DCGM, what is made of it is policy's: never a fault.
func TestNoDCGM(t *testing.T) {
	r := Report{Missing: "no such file"}
	for _, tt := range []struct {
		required bool
		want     string
	}{
		{false, "node: not_applicable none: no DCGM on this node"},
		{true, "node: unknown none: policy requires DCGM, and it is not there: no such file"},
	} {
		fs := Judge("gpu001", nil, r, policy.DCGM{Required: tt.required})
		if len(fs) != 1 || line(fs[0]) != tt.want {
			t.Errorf("required %t: got %v, want %s", tt.required, fs, tt.want)
		}
		if checks.FoldFindings(fs) != checks.Unknown {
			t.Errorf("required %t: a node without DCGM is %s by it", tt.required, checks.FoldFindings(fs))
		}
	}
}
