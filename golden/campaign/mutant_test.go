package campaign

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/netlist"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

// kernelWith is a kernel's PTX with one thing in it replaced everywhere.
func kernelWith(id, from, to string) string {
	k, _ := kernels.Lookup(id)
	return strings.ReplaceAll(k.Source(), from, to)
}

// A suite that is made worse scores visibly lower: else the score measures nothing. The multiplier with one constant
// operand is the first of them.
func TestAConstantMultiplierScoresLower(t *testing.T) {
	m, _ := netlist.Lookup("mad32")
	grade := func(src string) GateLine {
		r := runner(t, "k01_imad")
		mod, err := ptxvm.Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		r.entries["k01_imad"] = mod.Entries["k01_imad"]
		tr, err := r.Trace(0, 5, 512, nil)
		if err != nil {
			t.Fatal(err)
		}
		return tr.Grade(m)
	}
	k, _ := kernels.Lookup("k01_imad")
	src := k.Source()
	at := strings.Index(src, k.Probe)
	end := at + strings.Index(src[at:], ";")
	f := strings.Split(src[at:end], ",")
	f[2] = " 1664525" // of an LCG (Numerical Recipes)
	shipped, constant := grade(src), grade(src[:at]+strings.Join(f, ",")+src[end:])
	if s, c := shipped.Stuck.All.Rate, constant.Stuck.All.Rate; s < 0.9 || c > s-0.2 {
		t.Errorf("of the stuck-at faults the shipped kernel shows %.3f, one with a constant multiplier %.3f", s, c)
	}
}
