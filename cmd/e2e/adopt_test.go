package e2e

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// (a) A fresh install observes and fails no hook; then its nodes are adopted, a healthy job runs, and prologs pass on
// certificates alone.
func TestFreshInstallObservesThenIsAdopted(t *testing.T) {
	s := start(t, options{policy: policyOf{mode: "observe"}})

	// Nothing is enrolled: a broken GPU fails no hook and drains nothing.
	s.set("gpu005", 2, map[string]string{"remap_failed": "true"})
	s.run("true", "-N8", "--exclusive", "--gres=gpu:8")
	for _, n := range s.cluster.Nodes {
		if got := s.cluster.Node(n); got.Drained() {
			t.Errorf("%s is drained in a fresh install: %s", n, got.Reason)
		}
	}

	// Enrolled, and still observing: what would have been done is said, and nothing is done.
	if err := s.Enrol(s.ctx(), true, s.cluster.Nodes...); err != nil {
		t.Fatal(err)
	}
	s.await("every node heard from", heardFrom(s.cluster.Nodes))
	s.run("true", "-N8", "--exclusive", "--gres=gpu:8")
	s.await("seven certificates", func(ns map[string]wire.Node) bool {
		certified := 0
		for _, n := range ns {
			if healthy(n) {
				certified++
			}
		}
		return certified == 7
	})
	if n := s.cluster.Node("gpu005"); n.Drained() {
		t.Errorf("gpu005 is drained in observe mode: %s", n.Reason)
	}
	if h := s.text("gpu005"); !strings.Contains(h, "would") || !strings.Contains(h, "row") {
		t.Errorf("history of gpu005 does not say what would have been done:\n%s", h)
	}

	// A healthy job passes on certificates: the prolog reads nothing from the driver.
	before := s.hookCount("gpu001", "prolog", "fast_pass")
	s.run("sleep 1", "-N4", "--exclusive", "--gres=gpu:8", "-w", "gpu[001-004]")
	if after := s.hookCount("gpu001", "prolog", "fast_pass"); after != before+1 {
		t.Errorf("prologs on gpu001 that passed on the certificate alone: %d, then %d; want one more", before, after)
	}
}
