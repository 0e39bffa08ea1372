package agent

import (
	"slices"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/sdc"
)

// A wrong result of before stands beside a clean run of now; anything else of the same GPU is replaced.
func TestWhatAPrologsGoldenRunReplaces(t *testing.T) {
	f := func(check, gpu string, v checks.Verdict) checks.Finding {
		return checks.Finding{Check: check, Subject: checks.Subject{Kind: checks.KindGPU, GPUUUID: gpu}, Verdict: v}
	}
	before := []checks.Finding{f("user/x", "a", checks.Pass), f(sdc.ID, "a", checks.Pass), f(sdc.ID, "b", checks.Fail), f(sdc.ID, "c", checks.Fail), f(sdc.ID, "d", checks.Pass)}
	now := []checks.Finding{f(sdc.ID, "a", checks.Fail), f(sdc.ID, "b", checks.Pass), f(sdc.ID, "c", checks.Fail)}
	var got []string
	for _, x := range withGolden(before, now) {
		got = append(got, x.Check+" "+x.Subject.GPUUUID+" "+x.Verdict.String())
	}
	want := []string{"user/x a pass", "sdc b fail", "sdc d pass", "sdc a fail", "sdc b pass", "sdc c fail"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if same := withGolden(before, nil); len(same) != len(before) {
		t.Errorf("no run replaces nothing: %v", same)
	}
}

// While a golden child lives, and on a certificate of another suite, no certificate alone lets a job pass.
func TestTheFastPathWaitsForGoldenChildrenAndKnowsItsSuite(t *testing.T) {
	h := &Held{}
	h.Suite, h.Serial = "sha256:old", 7
	for _, tt := range []struct {
		suite string
		stale bool
	}{{"sha256:old", false}, {"sha256:new", true}, {"", false}} {
		if got := h.stale(State{Suite: tt.suite}); got != tt.stale {
			t.Errorf("suite %q: stale %t", tt.suite, got)
		}
	}
	if ok, why := h.holds(State{Suite: "sha256:new"}, nil); ok || why != "certificate 7 is of another suite than what would be tested now" {
		t.Errorf("%t, %q", ok, why)
	}
}
