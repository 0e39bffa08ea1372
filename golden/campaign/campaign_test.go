package campaign

import (
	"math"
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

func TestImports(t *testing.T) { importrules.Pure(t, "github.com/assay-gpu/assay/golden") }

func runner(t *testing.T, only ...string) *Runner {
	t.Helper()
	s, err := golden.LookupSuite("intake")
	if err != nil {
		t.Fatal(err)
	}
	if only == nil {
		only = s.Kernels
	}
	r, err := New(Options{Kernels: only, Size: golden.Reduced, Capability: 90, Seed: 1, SMs: 2})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func run(t *testing.T, r *Runner, line string) Line {
	t.Helper()
	fs, err := ptxvm.ParseFaults([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.Run(fs[0])
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		only       []string
		outcome    string
		located    bool
	}{
		{"a stuck bit of the tensor core", `{"v":1,"id":"a","class":"stuck","where":{"sm":5,"part":1,"unit":"tensor16","lane":9},"when":{"p":1},"do":{"or":"00000400"},"seed":1}`, nil, Detected, true},
		{"the same, without the kernel that uses it", `{"v":1,"id":"b","class":"stuck","where":{"sm":5,"part":1,"unit":"tensor16","lane":9},"when":{"p":1},"do":{"or":"00000400"},"seed":1}`, []string{"k01_imad", "k04_ffma"}, Missed, false},
		{"addresses far off", `{"v":1,"id":"c","class":"addr","where":{"sm":0,"part":0,"unit":"lsu_addr","lane":3},"when":{"p":1},"do":{"addr_xor":"40000000"},"seed":1}`, nil, DUE, false},
		{"a unit that the machine cannot break", `{"v":1,"id":"d","class":"stuck","where":{"sm":0,"part":0,"unit":"nvlink","lane":3},"when":{"p":1},"do":{"or":"1"},"seed":1}`, nil, NotModelled, false},
		{"too hot to act", `{"v":1,"id":"e","class":"stuck","where":{"sm":0,"part":0,"unit":"fma32","lane":3},"when":{"p":1,"temp_c":[90,110]},"do":{"or":"1"},"seed":1}`, nil, Idle, false},
	} {
		l := run(t, runner(t, tt.only...), tt.line)
		located := l.Located != nil && l.Located.SM && l.Located.Partition && l.Located.Lane && l.Located.Bit
		if l.Outcome != tt.outcome || located != tt.located {
			t.Errorf("%s: %+v, located %+v", tt.name, l, l.Located)
		}
	}
}

// A suite without its kernels finds less: the figure moves with what it measures. And every stratum that is drawn keeps a
// floor.
func TestDrawnFaults(t *testing.T) {
	n := 48
	if testing.Short() {
		n = 16
	}
	fs, err := Draw(7, n)
	if err != nil || len(fs) != n {
		t.Fatalf("%d faults: %v", len(fs), err)
	}
	count := func(r *Runner) (detected, missed int, lines []Line) {
		for _, f := range fs {
			l, err := r.Run(f)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, l)
		}
		for _, s := range Summarise(lines) {
			detected, missed = detected+s.Detected, missed+s.Missed
		}
		return detected, missed, lines
	}
	whole, missed, lines := count(runner(t))
	part, _, _ := count(runner(t, "k01_imad"))
	if whole <= part {
		t.Errorf("the suite finds %d, one kernel of it %d", whole, part)
	}
	for _, l := range lines {
		if l.Outcome == Missed && l.Workload == "" || l.Outcome == Idle && l.Workload != "" {
			t.Errorf("%+v", l)
		}
	}
	if whole < 4*missed {
		t.Errorf("%d detected, %d missed: %+v", whole, missed, Summarise(lines))
	}
}

func TestDrawIsTheSameForTheSameSeed(t *testing.T) {
	n := len(Strata) * len(drawn)
	a, err := Draw(3, n)
	b, err2 := Draw(3, n)
	c, err3 := Draw(4, n)
	if err != nil || err2 != nil || err3 != nil {
		t.Fatal(err, err2, err3)
	}
	same := 0
	units := map[string]bool{}
	for i := range a {
		if a[i].Do != b[i].Do || a[i].Unit() != b[i].Unit() || a[i].Lanes() != b[i].Lanes() {
			t.Errorf("fault %d differs", i)
		}
		if a[i].Do == c[i].Do && a[i].Lanes() == c[i].Lanes() {
			same++
		}
		units[a[i].Unit().String()] = true
	}
	if same > n/4 || len(units) != len(drawn) {
		t.Errorf("%d are those of another seed; %d units", same, len(units))
	}
}

// Against tables: 0 and 10 of 10 give 0 to 0.3085 and back; 5 of 10 gives 0.1871 to 0.8129.
func TestClopperPearson(t *testing.T) {
	for _, tt := range []struct {
		k, n      int
		low, high float64
	}{{0, 10, 0, 0.3085}, {10, 10, 0.6915, 1}, {5, 10, 0.1871, 0.8129}, {299, 300, 0.9816, 0.9999}} {
		low, high := ClopperPearson(tt.k, tt.n)
		if math.Abs(low-tt.low) > 1e-4 || math.Abs(high-tt.high) > 1e-4 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", tt.k, tt.n, low, high, tt.low, tt.high)
		}
	}
}
