package catalog

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/xid"
)

// The action that policy sets for a check holds for its faults. It makes none, and puts aside no hard one.
func TestPolicySetsTheActionOfAChecksFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		check  string
		action string
		change func(*Snapshot)
		want   string // what is not a plain pass
		says   string // part of its reason
	}{
		{"a soft fault asks for what policy says", "ecc", "drain", func(s *Snapshot) { s.GPUs[0].ECC.Enabled = false }, "ecc gpu/GPU-0 fail drain", "(by policy drain, not fix_config)"},
		{"a soft fault that policy only watches is none, and says so", "ecc", "watch", func(s *Snapshot) { s.GPUs[0].ECC.Enabled = false }, "ecc gpu/GPU-0 not_applicable watch", "(a fault, fix_config; by policy only watch)"},
		{"a hard fault stays one with another action", "rowremap", "drain", func(s *Snapshot) { s.GPUs[0].RowRemap.Failed = true }, "rowremap gpu/GPU-0 fail drain hard", "(by policy drain, not rma)"},
		{"a hard fault is not put aside, and says so", "rowremap", "none", func(s *Snapshot) { s.GPUs[0].RowRemap.Failed = true }, "rowremap gpu/GPU-0 fail rma hard", "(policy's none does not hold for a hard fault)"},
		{"a pass that asks for a reset is left alone", "rowremap", "rma", func(s *Snapshot) { s.GPUs[0].RowRemap.Pending = true }, "rowremap gpu/GPU-0 pass reset_gpu", "remap pending"},
		{"what could not be read is left alone", "ecc", "rma", func(s *Snapshot) { s.GPUs[0].ECC = ecc.Reading{} }, "ecc gpu/GPU-0 unknown none", ""},
		{"what is not supported is left alone", "ecc", "rma", func(s *Snapshot) { s.GPUs[0].ECC = ecc.Reading{Have: checks.NotSupported} }, "ecc gpu/GPU-0 not_applicable none", ""},
		{"another check's faults are left alone", "ecc", "drain", func(s *Snapshot) { s.GPUs[0].RowRemap.Failed = true }, "rowremap gpu/GPU-0 fail rma hard", ""},
		{"the same action needs no word", "rowremap", "rma", func(s *Snapshot) { s.GPUs[0].RowRemap.Failed = true }, "rowremap gpu/GPU-0 fail rma hard", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := healthy(1), acting()
			tt.change(&s)
			p.Checks = map[string]policy.Check{tt.check: {Action: tt.action}}
			fs := Judge(s, nil, p)
			if got := brief(fs); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			for _, f := range fs {
				if tt.want != "" && brief([]checks.Finding{f}) == tt.want {
					if !strings.Contains(f.Reason, tt.says) || tt.says == "" && strings.Contains(f.Reason, "policy") {
						t.Errorf("reason %q, want %q in it", f.Reason, tt.says)
					}
				}
			}
		})
	}
}

func TestPolicySetsTheActionOfALogsFaults(t *testing.T) {
	e, ok := xid.Parse("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.")
	if !ok {
		t.Fatal("not read")
	}
	p := acting()
	p.Checks = map[string]policy.Check{"xid": {Action: "drain"}}
	if got := brief(JudgeLog([]LogEvent{{Event: e, At: at}}, healthy(1).Inventory(), aer.Tree{}, p)); got != "xid gpu/GPU-0 fail drain hard" {
		t.Errorf("got %s", got)
	}
}
