package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/agent"
	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// What DCGM sees, and what an executable of the site's own finds, takes a node out of service as any finding does; what is
// only observed is told and takes nothing.
func TestDCGMAndTheSitesOwnChecks(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "check-scratch")
	text := fmt.Sprintf("#!/bin/sh\ntest -e %s/full-$ASSAY_NODE || exit 0\necho scratch is full on $ASSAY_NODE\nexit 2\n", dir)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	s := plain(t, options{policy: policyOf{more: fmt.Sprintf(`
dcgm: {health: standalone, every: 1s}
user_checks:
  scratch: {command: [%q], every: 1s}
overrides:
  - {name: one that observes, nodes: [gpu003], set: {checks: {user/scratch: {mode: observe}}}}
`, script)}}, "gpu001", "gpu002", "gpu003")

	// A DCGM that was not there comes up, and wants a GPU isolated.
	if err := sim.Set(s.Hardware("gpu001"), -1, map[string]string{"dcgm": "up"}); err != nil {
		t.Fatal(err)
	}
	if err := sim.Set(s.Hardware("gpu001"), 4, map[string]string{"dcgm_error": "52"}); err != nil {
		t.Fatal(err)
	}
	out := s.awaitNode("gpu001", "out of service", func(n wire.Node) bool { return !healthy(n) && n.Case != "" })
	if c := s.caseOf(out.Case); c.Cause != "dcgm_health 52" {
		t.Errorf("case of %q, want of what DCGM saw\n%s", c.Cause, s.text("gpu001"))
	}

	found := s.evidence("gpu001", out.Case)
	if !slices.ContainsFunc(found, func(f checks.Finding) bool {
		return f.Check == "dcgm_health" && f.Code == 52 && f.Verdict == checks.Fail && f.Action == checks.Drain && f.Subject.GPUIndex != nil && *f.Subject.GPUIndex == 4
	}) {
		t.Errorf("the evidence, judged again, lacks what DCGM saw: %+v", found)
	}

	// The same fault of a script on two nodes: one acts on it, one observes.
	for _, n := range []string{"gpu003", "gpu002"} {
		if err := os.WriteFile(filepath.Join(dir, "full-"+n), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out = s.awaitNode("gpu002", "out of service", func(n wire.Node) bool { return !healthy(n) && n.Case != "" })
	if c := s.caseOf(out.Case); c.Cause != "user/scratch" {
		t.Errorf("case of %q, want of the script's\n%s", c.Cause, s.text("gpu002"))
	}
	found = s.evidence("gpu002", out.Case)
	if !slices.ContainsFunc(found, func(f checks.Finding) bool {
		return f.Check == "user/scratch" && f.Verdict == checks.Fail && f.Reason == "scratch is full on gpu002"
	}) {
		t.Errorf("the evidence, judged again, lacks what the script said: %+v", found)
	}
	if text, err := s.CLI(s.ctx(), "node", "explain", "gpu002"); err != nil || !strings.Contains(text, "scratch is full on gpu002") {
		t.Errorf("%v: the reason is not told:\n%s", err, text)
	}
	if n := s.awaitNode("gpu003", "in service", healthy); n.Case != "" {
		t.Errorf("gpu003 only observes, and has case %s", n.Case)
	}
}

// evidence waits for the evidence of a case and judges it again.
func (s *site) evidence(node, id string) []checks.Finding {
	s.t.Helper()
	dir := filepath.Join(s.StateDir(node), "evidence", id)
	var c agent.Capture
	s.until("evidence of "+id, func() bool {
		var err error
		c, err = agent.ReadCapture(dir)
		return err == nil && !c.Beside.Empty()
	})
	return c.Judge(checks.Standard).Findings
}
