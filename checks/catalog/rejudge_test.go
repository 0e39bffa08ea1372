package catalog

import (
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/xid"
)

// A finding that was kept is judged again as its reading would be.
func TestRejudge(t *testing.T) {
	s := healthy(8)
	s.GPUs[0].RowRemap.Correctable, s.GPUs[1].RowRemap.Failed = 12, true
	s.GPUs[2].ECC.VolatileCorrected, s.GPUs[3].ECC.Enabled, s.GPUs[4].ECC.VolatileUncorrected = 60_000_000, false, 2
	s.GPUs[5].ECC.SRAMThresholdExceeded = true
	s.GPUs[6].Call.Lost = true
	e, ok := xid.Parse("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.")
	if !ok {
		t.Fatal("not read")
	}
	found := append(Judge(s, nil, policy.Default()), xid.Judge(e, policy.XID{}))
	for _, tt := range []struct {
		name   string
		change func(*policy.Policy)
		want   string
	}{
		{"by the same policy it is the same", func(*policy.Policy) {},
			"driver gpu/GPU-6 fail reboot hard\nrowremap gpu/GPU-0 fail drain\nrowremap gpu/GPU-1 fail rma hard\necc gpu/GPU-2 fail drain\necc gpu/GPU-3 fail fix_config\necc gpu/GPU-4 fail reset_gpu\necc gpu/GPU-5 fail rma\nxid gpu/0000:01:00.0 fail reboot hard"},
		{"thresholds count anew, where the reading was kept", func(p *policy.Policy) {
			p.RowRemap.MaxCorrectable, p.ECC.MaxVolatileCorrected, p.ECC.RequireEnabled, p.ECC.MaxVolatileUncorrected = 12, 60_000_000, false, 2
		}, "driver gpu/GPU-6 fail reboot hard\nrowremap gpu/GPU-1 fail rma hard\necc gpu/GPU-3 not_applicable none\necc gpu/GPU-5 fail rma\nxid gpu/0000:01:00.0 fail reboot hard"},
		{"actions by XID and by check", func(p *policy.Policy) {
			p.XID.Actions = map[int]string{79: "watch"}
			p.Checks = map[string]policy.Check{"driver": {Action: "drain"}}
		}, "driver gpu/GPU-6 fail drain hard\nrowremap gpu/GPU-0 fail drain\nrowremap gpu/GPU-1 fail rma hard\necc gpu/GPU-2 fail drain\necc gpu/GPU-3 fail fix_config\necc gpu/GPU-4 fail reset_gpu\necc gpu/GPU-5 fail rma\nxid gpu/0000:01:00.0 not_applicable watch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := policy.Default()
			tt.change(&p)
			var again []checks.Finding
			for _, f := range found {
				if f.Verdict != checks.Fail {
					continue
				}
				g, whole := Rejudge(f, p)
				if want := f.Check != "driver" && f.Action != checks.RMA || f.Check == "rowremap"; whole != want {
					t.Errorf("%s: the reading was kept: %t, want %t", f.Reason, whole, want)
				}
				if !g.At.Equal(f.At) || g.BootID != f.BootID || g.Subject.Key() != f.Subject.Key() {
					t.Errorf("%+v is another than %+v", g, f)
				}
				again = append(again, g)
			}
			if got := brief(again); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// A fault by the rate of an hour stands as it was made: its evidence holds the count since the driver was loaded alone.
func TestRejudgeOfARateLeavesItStanding(t *testing.T) {
	var then uint64
	r := ecc.Reading{Have: checks.Read, Enabled: true, HaveSRAM: checks.Read, VolatileCorrected: 9000, CorrectedThen: &then, Over: time.Hour}
	f := ecc.Judge(checks.GPU{UUID: "GPU-1"}, r, policy.Default().ECC)
	if f.Verdict != checks.Fail {
		t.Fatalf("%+v", f)
	}
	if again, whole := Rejudge(f, policy.Default()); again.Verdict != checks.Fail || whole {
		t.Errorf("judged again: %+v, whole %t", again, whole)
	}
}
