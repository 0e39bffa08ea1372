package xid

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

func TestFixtures(t *testing.T) {
	judge := func(line string) []checks.Finding {
		e, ok := Parse(line)
		if !ok {
			t.Fatalf("not read: %s", line)
		}
		return []checks.Finding{Judge(e, policy.XID{})}
	}
	const gpu, nvswitch = "NVRM: Xid (PCI:0000:01:00): ", "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): "
	checktest.Events(t, ID, judge(gpu+"31, pid=7, name=python3, MMU Fault"), judge(gpu+"79, GPU has fallen off the bus."), judge(gpu+"9999, new"))
	checktest.Events(t, SwitchID, judge(nvswitch+"20001, Non-fatal, Link 48 x"), judge(nvswitch+"20034, Fatal, Link 48 LTSSM Fault Up"), judge(nvswitch+"99999, new"))

	d, ok := ParseDamaged(nvswitch)
	if !ok {
		t.Fatal("not read")
	}
	for _, e := range []Event{{Link: -1}, d} {
		if f := Judge(e, policy.XID{Actions: map[int]string{0: "rma"}}); f.Verdict != checks.Unknown || f.Action != checks.Watch || f.Hard || f.Reason == "" || (f.Check == SwitchID) != e.Switch {
			t.Errorf("an event whose number cannot be told: %+v", f)
		}
	}
}
