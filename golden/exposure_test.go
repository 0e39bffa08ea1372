package golden_test

import (
	"math"
	"testing"

	"github.com/assay-gpu/assay/golden"
)

// Of an H100 with 132 SMs and 1,980 MHz: a block of 10 ms.
func TestOnlyTimeAtSpeedCounts(t *testing.T) {
	const ms, sms = 10_000_000, 132
	for _, tt := range []struct {
		name        string
		cycles, ns  uint64
		max         int
		mhz         float64
		took, speed bool
	}{
		{"at the highest clock", 19_800_000, ms, 1980, 1980, true, true},
		{"at nine tenths", 17_820_000, ms, 1980, 1782, true, true},
		{"a little below", 17_819_000, ms, 1980, 1781.9, true, false},
		{"throttled to half", 9_900_000, ms, 1980, 990, true, false},
		{"a clock above the highest: the timer lies", 25_000_000, ms, 1980, 2500, true, false},
		{"the highest is not known", 19_800_000, ms, 0, 1980, true, false},
		{"a timer that did not move", 19_800_000, 0, 1980, 0, false, false},
	} {
		e := golden.Expose(tt.cycles, tt.ns, sms, tt.max)
		want := golden.Exposure{MHz: tt.mhz}
		if tt.took {
			want.Seconds = 0.01 / sms
		}
		if tt.speed {
			want.AtSpeed = want.Seconds
		}
		if math.Abs(e.MHz-want.MHz) > 1e-6 || e.Seconds != want.Seconds || e.AtSpeed != want.AtSpeed {
			t.Errorf("%s: %+v, want %+v", tt.name, e, want)
		}
	}
	if e := golden.Expose(1, 1, 0, 1980); e != (golden.Exposure{}) {
		t.Errorf("a GPU without SMs: %+v", e)
	}
}

func TestExposureAddsUpByUnit(t *testing.T) {
	stage := func(kernel string, s, at, mhz float64) golden.Stage {
		return golden.Stage{Kernel: kernel, Exposure: golden.Exposure{Seconds: s, AtSpeed: at, MHz: mhz}}
	}
	got := golden.Exposures(golden.Result{Stages: []golden.Stage{
		stage("k04_ffma", 1, 1, 1980), stage("k01_imad", 2, 0, 1200), stage("k04_ffma", 3, 0, 1500), {Kernel: "k05_dfma"}, stage("p0017", 0.5, 0.5, 1900),
	}})
	want := map[string]golden.Exposure{"corpus": {0.5, 0.5, 1900}, "FP32 fused multiply-add (FFMA)": {4, 1, 1500}, "integer multiply-add (IMAD)": {2, 0, 1200}}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, u := range got {
		if want[u.Unit] != u.Exposure {
			t.Errorf("%s: %+v, want %+v", u.Unit, u.Exposure, want[u.Unit])
		}
		if i > 0 && got[i-1].Unit >= u.Unit {
			t.Errorf("not sorted: %s before %s", got[i-1].Unit, u.Unit)
		}
	}
}
