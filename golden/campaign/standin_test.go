package campaign

import (
	"slices"
	"testing"

	"github.com/assay-gpu/assay/golden"
)

// Each tool sees what its rule can see, and not what it cannot.
func TestStandInsSeeWhatTheirRulesCan(t *testing.T) {
	r, err := New(Options{Kernels: []string{"k04_ffma"}, Size: golden.Reduced, Capability: 90, Seed: 1, SMs: 2, Others: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, line string
		seen       []string
	}{
		{"a stuck bit gives the same wrong number each time", `{"v":1,"id":"a","class":"stuck","where":{"sm":0,"part":0,"unit":"fma32","lane":3},"when":{"p":1},"do":{"or":"00010000"},"seed":1}`, nil},
		{"an exponent that is stuck at ones gives infinities", `{"v":1,"id":"b","class":"stuck","where":{"sm":0,"part":0,"unit":"fma32","lane":3},"when":{"p":1},"do":{"or":"7f800000"},"seed":1}`, []string{"nan-scan"}},
		{"a product that is wrong now and then differs from the first", `{"v":1,"id":"c","class":"stuck","where":{"sm":0,"part":0,"unit":"fma32","lane":3},"when":{"p":0.002},"do":{"xor":"00400000"},"seed":1}`, []string{"gpu-burn", "dcgm-diagnostic"}},
		{"a stuck bit on the way to memory", `{"v":1,"id":"d","class":"stuck","where":{"sm":0,"part":0,"unit":"lsu_data","lane":3},"when":{"p":1},"do":{"or":"00000001"},"seed":1}`, []string{"dcgm-memory"}},
	} {
		l := run(t, r, tt.line)
		for _, s := range tt.seen {
			if !slices.Contains(l.Others, s) {
				t.Errorf("%s: seen by %v, not by %s", tt.name, l.Others, s)
			}
		}
		if tt.seen == nil && len(l.Others) > 0 {
			t.Errorf("%s: seen by %v", tt.name, l.Others)
		}
		if v := Compare([]Line{l}); v[0].Seen.Of > 1 || len(v) != 5 {
			t.Errorf("%s: %+v", tt.name, v)
		}
	}
}
