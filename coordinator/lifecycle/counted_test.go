package lifecycle

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

func TestCounted(t *testing.T) {
	xid := checks.Finding{Check: "xid", Code: 79, Verdict: checks.Fail, Hard: true, BootID: "b2"}
	ecc := checks.Finding{Check: "ecc", Verdict: checks.Fail}
	of := func(f checks.Finding, boot string) checks.Finding { f.BootID = boot; return f }
	modes := func(fleet, check policy.Mode) policy.Policy {
		p := policy.Default()
		p.Mode, p.Checks = fleet, map[string]policy.Check{"ecc": {Mode: check}}
		return p
	}
	act := modes(policy.Act, "")
	for _, c := range []struct {
		name   string
		state  State
		ev     Event
		policy policy.Policy
		want   string // empty: not counted
	}{
		{"a hard fault", Certified, HardFault{Finding: xid}, act, "xid 79"},
		{"a soft fault", Certified, SoftFault{Finding: ecc}, act, "ecc"},
		{"of no boot that is named", Suspect, SoftFault{Finding: ecc}, act, "ecc"},
		{"of a boot not seen yet", Certified, HardFault{Finding: of(xid, "b3")}, act, "xid 79"},
		{"of a boot before", Certified, HardFault{Finding: of(xid, "b1")}, act, ""},
		{"on a node that is out", Quarantined, HardFault{Finding: xid}, act, "xid 79"},
		{"with a part at the vendor", RMA, HardFault{Finding: xid}, act, ""},
		{"retired", Retired, SoftFault{Finding: ecc}, act, ""},
		{"not enrolled", "", SoftFault{Finding: ecc}, act, ""},
		{"only observed", Certified, SoftFault{Finding: ecc}, modes(policy.Observe, ""), "ecc"},
		{"the check is observed", Certified, SoftFault{Finding: ecc}, modes(policy.Act, policy.Observe), "ecc"},
		{"the check is off", Certified, SoftFault{Finding: ecc}, modes(policy.Act, policy.Off), ""},
		{"the fleet is off, the check is not", Certified, SoftFault{Finding: ecc}, modes(policy.Off, policy.Act), "ecc"},
		{"a pass that wants a reset", Certified, ResetWanted{Finding: ecc}, act, ""},
		{"the end of a screen", Certified, Screened{Findings: []checks.Finding{xid}}, act, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := Node{Name: "gpu001", State: c.state, BootID: "b2", PastBoots: []string{"b1"}}
			reason, ok := Counted(n, c.ev, c.policy)
			if reason != c.want || ok != (c.want != "") {
				t.Errorf("counted %v under %q, want %q", ok, reason, c.want)
			}
		})
	}
}
