package coordinator

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// In a dry run a hard fault revokes and drains nothing; the guard says what it would do. When the dry run ends, it is done.
func TestAGuardDryRunTakesNothing(t *testing.T) {
	s := startSiteWith(t, newPlant("gpu001"), "/dryrun/", nil, func(c *Config) {
		p := *c.Policy
		p.Guard.DryRun = true
		c.Policy = &p
	})
	s.certify("gpu001")
	f := fellOff
	f.BootID = s.bootID("gpu001")
	s.report(checks.Report{ID: "fault", Node: "gpu001", BootID: f.BootID, Why: checks.WhyBackground, Verdict: checks.Fail, Findings: []checks.Finding{f}})
	n := s.until("gpu001", "withheld", func(n wire.Node) bool { return n.State == "withheld" })
	if n.Certificate != nil {
		t.Error("a hard fault left the certificate")
	}
	g, err := s.coord.Guard(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !g.DryRun || len(g.Waits) != 1 || !g.Waits[0].Would || !strings.Contains(g.Waits[0].Why, "drain would be done now") {
		t.Errorf("guard %+v", g)
	}
	for _, b := range g.Budgets {
		if b.Spent != 0 {
			t.Errorf("a dry run was charged: %+v", b)
		}
	}
	if got := s.changes(); len(got) != 0 {
		t.Errorf("Slurm saw %v", got)
	}
	s.try("end the dry run", func(ctx context.Context) error {
		p, err := s.coord.Policy(ctx)
		if err != nil {
			return err
		}
		p.Guard.DryRun = false
		_, err = s.coord.SetPolicy(ctx, "root", p)
		return err
	})
	s.until("gpu001", "drained", func(wire.Node) bool { return slices.Contains(s.changes(), "drain gpu001") })
}
