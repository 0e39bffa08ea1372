package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A board without spare rows goes back: its ticket is opened by serial, told to the site's own system, bundled for the
// vendor, and closed by the new serial in its slot and the intake screen. The ledger knows where both boards are.
func TestRMAByFollowingTheSerial(t *testing.T) {
	told := filepath.Join(t.TempDir(), "told")
	hook := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ncat >>"+told+"\necho >>"+told+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := plain(t, options{control: []string{"--rma-hook", hook}}, "gpu001")
	s.set("gpu001", 5, map[string]string{"remap_failed": "true"})
	n := s.awaitNode("gpu001", "a person's", func(n wire.Node) bool { return n.State == "quarantined" && n.Owner == "on-call" })
	s.cli("rma", "open", n.Case, "--reason", "no spare rows")
	var k rma.Ticket
	s.show(&k, "rma", "show", "gpu001")
	if k.State != rma.Opened || k.Serial == "" || k.Case != n.Case || !strings.Contains(k.Slot, "GPU 5") || k.Remind.IsZero() {
		t.Fatalf("ticket %+v", k)
	}
	s.cli("rma", "update", k.ID, "--state", "shipped", "--vendor", "4711", "--warranty", "2027-06-30")
	if out, err := s.CLI(s.ctx(), "rma", "update", k.ID, "--state", "accepted"); err == nil {
		t.Errorf("back a step: %s", out)
	}

	file := filepath.Join(s.dir, "bundle.tar.gz")
	s.cli("rma", "bundle", k.ID, "--file", file)
	out, err := exec.Command("tar", "xzOf", file, k.ID+"/README.txt", k.ID+"/reproduce.sh", k.ID+"/evidence/snapshot.json", k.ID+"/findings.json").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Serial:        "+k.Serial) || !strings.Contains(string(out), "Your number:   4711") || !strings.Contains(string(out), "rowremap") {
		t.Errorf("bundle: %v\n%.2000s", err, out)
	}
	if out := s.cli("rma", "list", "--csv"); !strings.Contains(out, k.Serial) || !strings.HasPrefix(out, "ticket,case,node") {
		t.Errorf("CSV %q", out)
	}

	s.set("gpu001", 5, map[string]string{"remap_failed": "false", "serial": "1650000000001", "uuid": "GPU-00000000-0000-4000-8000-000000000001"})
	s.awaitNode("gpu001", "back in service", healthy)
	s.show(&k, "rma", "show", k.ID)
	if k.State != rma.Closed || k.Fitted != "1650000000001" || !strings.Contains(k.Outcome, k.Fitted) {
		t.Errorf("ticket %+v", k)
	}
	var ps []rma.Part
	s.show(&ps, "rma", "parts", k.Serial, k.Fitted)
	if len(ps) != 2 || ps[0].Places[0].Until.IsZero() || len(ps[0].Faults) != 1 || ps[0].Faults[0].Case != k.Case || !ps[1].Places[0].Until.IsZero() {
		t.Errorf("ledger %+v", ps)
	}
	var lemons []rma.Lemon
	s.show(&lemons, "fleet", "lemons")
	if len(lemons) != 1 || lemons[0].Tickets != 1 {
		t.Errorf("lemons %+v", lemons)
	}
	s.until("the site's own system to know", func() bool {
		b, _ := os.ReadFile(told)
		return strings.Contains(string(b), `"state":"closed"`) && strings.Contains(string(b), `"vendor":"4711"`)
	})
}

// cli runs the command line, which must work.
func (s *site) cli(args ...string) string {
	s.t.Helper()
	out, err := s.CLI(s.ctx(), args...)
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return out
}
