package campaign

import (
	"slices"
	"testing"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

// A fault that only acts when hot is found in the second pass, and says whether it corrupts a job.
func TestAFaultOfAHotDeviceIsFound(t *testing.T) {
	l := run(t, runner(t, "k04_ffma"), `{"v":1,"id":"a","class":"stuck","where":{"sm":0,"part":0,"unit":"fma32","lane":3},"when":{"p":1,"temp_c":[70,110],"mhz":[1000,1800],"min_util":0.9,"after_s":10},"do":{"or":"00010000"},"seed":1}`)
	if l.Outcome != Detected || l.Workload == "" || !l.Located.Lane {
		t.Errorf("%+v, located %+v", l, l.Located)
	}
}

// Leave one out: a fault that one kernel alone shows is lost without it.
func TestLost(t *testing.T) {
	r, err := New(Options{Kernels: []string{"k01_imad", "k04_ffma", "k05_dfma"}, Size: golden.Reduced, Capability: 90, Seed: 1, SMs: 2, Each: true})
	if err != nil {
		t.Fatal(err)
	}
	lines := []Line{
		run(t, r, `{"v":1,"id":"a","class":"stuck","where":{"sm":0,"part":0,"unit":"fma32","lane":3},"when":{"p":1},"do":{"or":"00010000"},"seed":1}`),
		run(t, r, `{"v":1,"id":"b","class":"stuck","where":{"sm":0,"part":0,"unit":"regfile","lane":3},"when":{"p":1},"do":{"xor":"00010000"},"seed":1}`),
	}
	if !slices.Equal(lines[0].Shown, []string{"k04_ffma"}) {
		t.Errorf("%+v", lines[0])
	}
	if got := Lost(lines); got["k04_ffma"] != 1 || len(got) != 1 {
		t.Errorf("lost: %v, lines %+v", got, lines)
	}
}

// Triggers of few bits are found and those of many are not.
func TestTriggers(t *testing.T) {
	r := runner(t, "k01_imad")
	few, err := r.Trace(0, 5, 64, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := few.Triggers(40, 1)
	i := slices.IndexFunc(l, func(l TriggerLine) bool { return l.Unit == "mad32" })
	if i < 0 || l[i].Shares[0] != 1 || l[i].Shares[32] > 0.5 || l[i].W50 < l[i].Goal {
		t.Errorf("%+v", l)
	}
}

// Without a fault nothing is found, however hostile the scheduling; and a run that is not clean says so.
func TestCleanRuns(t *testing.T) {
	r := runner(t)
	for seed := range uint64(3) {
		c, err := r.Clean(seed)
		if err != nil || c.Wrong != "" || c.Blocks < len(r.o.Kernels) {
			t.Errorf("seed %d: %+v: %v", seed, c, err)
		}
	}
	m, err := ptxvm.Parse(kernelWith("k01_imad", "shf.l.wrap.b32", "shf.r.wrap.b32"))
	if err != nil {
		t.Fatal(err)
	}
	bad := runner(t, "k01_imad")
	bad.entries["k01_imad"] = m.Entries["k01_imad"]
	if c, err := bad.Clean(1); err != nil || c.Wrong == "" {
		t.Errorf("a kernel that computes something else is called clean: %+v, %v", c, err)
	}
}
