package agent

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
)

func TestDeltas(t *testing.T) {
	base := func(f func(*Baseline)) *Baseline {
		b := &Baseline{BootID: "boot-1", GPUs: Counters(wellSnapshot())}
		if f != nil {
			f(b)
		}
		return b
	}
	for _, c := range []struct {
		name  string
		base  *Baseline
		now   func(*catalog.Snapshot)
		check string
		want  checks.Verdict
		act   checks.Action
		say   string
	}{
		{"nothing new", base(nil), func(*catalog.Snapshot) {}, "ecc", checks.Pass, checks.None, "no new errors"},
		{"one corrected error is watched", base(nil), func(s *catalog.Snapshot) { s.GPUs[0].ECC.VolatileCorrected = 1 }, "ecc", checks.Pass, checks.Watch, "1 corrected errors"},
		{"uncorrected too", base(nil), func(s *catalog.Snapshot) { s.GPUs[0].ECC.VolatileUncorrected = 2 }, "ecc", checks.Pass, checks.Watch, "2 uncorrected"},
		{"a remap", base(nil), func(s *catalog.Snapshot) { s.GPUs[0].RowRemap.Correctable = 1 }, "rowremap", checks.Pass, checks.Watch, "1 rows"},
		{"no baseline", nil, func(*catalog.Snapshot) {}, "ecc", checks.Unknown, checks.None, "no baseline"},
		{"a boot between", base(func(b *Baseline) { b.BootID = "boot-0" }), func(*catalog.Snapshot) {}, "ecc", checks.Unknown, checks.None, "booted"},
		{"a counter that fell", base(func(b *Baseline) { b.GPUs[0].VolatileCorrected = 5 }), func(*catalog.Snapshot) {}, "ecc", checks.Unknown, checks.None, "was reset"},
		{"a GPU that was not there", base(func(b *Baseline) { b.GPUs = b.GPUs[1:] }), func(*catalog.Snapshot) {}, "rowremap", checks.Unknown, checks.None, "not there"},
		{"not read now", base(nil), func(s *catalog.Snapshot) { s.GPUs[0].ECC.Have = checks.Unread }, "ecc", checks.Unknown, checks.None, "not read"},
		{"not read then", base(func(b *Baseline) { b.GPUs[0].HaveRemap = false }), func(*catalog.Snapshot) {}, "rowremap", checks.Unknown, checks.None, "not read"},
		{"no such counter", base(nil), func(s *catalog.Snapshot) { s.GPUs[0].ECC.Have = checks.NotSupported }, "ecc", checks.NotApplicable, checks.None, "counts no"},
	} {
		snap := wellSnapshot()
		c.now(&snap)
		fs := Deltas(c.base, snap, []string{"GPU-a"})
		if len(fs) != 2 {
			t.Errorf("%s: %d findings for one GPU", c.name, len(fs))
			continue
		}
		for _, f := range fs {
			if f.Subject.GPUUUID != "GPU-a" || f.BootID != "boot-1" {
				t.Errorf("%s: finding on %+v", c.name, f.Subject)
			}
			if f.Check == c.check && (f.Verdict != c.want || f.Action != c.act || !strings.Contains(f.Reason, c.say)) {
				t.Errorf("%s: %s %s %q, want %s %s %q", c.name, f.Verdict, f.Action, f.Reason, c.want, c.act, c.say)
			}
		}
	}
}
