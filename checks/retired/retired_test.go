package retired

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

var gpu = checks.GPU{Node: "gpu001", UUID: "GPU-1", Index: 2, PCI: "0000:3b:00.0"}

func TestJudge(t *testing.T) {
	limits := policy.RetiredPages{Full: 63, Watch: 15}
	pages := func(single, double int, pending bool) Reading {
		return Reading{Have: checks.Read, Single: single, Double: double, Pending: pending}
	}
	for _, tt := range []struct {
		name    string
		reading Reading
		verdict checks.Verdict
		action  checks.Action
		reason  string
	}{
		{"none", pages(0, 0, false), checks.Pass, checks.None, "0 pages retired"},
		{"one below what is watched", pages(10, 4, false), checks.Pass, checks.None, "14 pages retired"},
		{"as many as are watched", pages(10, 5, false), checks.Pass, checks.Watch, "15 pages retired, of 63"},
		{"pending is safe to run on", pages(1, 1, true), checks.Pass, checks.ResetGPU, "2 pages retired, more wait for a GPU reset"},
		{"pending outranks what is watched", pages(40, 20, true), checks.Pass, checks.ResetGPU, "60 pages"},
		{"one page fits", pages(40, 22, false), checks.Pass, checks.Watch, "62 pages"},
		{"62 and one that waits: Azure replaces the board", pages(40, 22, true), checks.Fail, checks.RMA, "62 pages retired, pending true: the table is full at 63"},
		{"the V100 of sample 09", pages(41, 22, true), checks.Fail, checks.RMA, "63 pages"},
		{"full", pages(63, 0, false), checks.Fail, checks.RMA, "63 pages"},
		{"never asked", Reading{}, checks.Unknown, checks.None, "retired pages not read"},
		{"the call failed", Reading{Err: "unknown error", Single: 63}, checks.Unknown, checks.None, "not read: unknown error"},
		{"A100 and later: N/A is not zero", Reading{Have: checks.NotSupported, Double: 63}, checks.NotApplicable, checks.None, "retires no pages"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(gpu, tt.reading, limits)
			if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.verdict, tt.action, tt.reason)
			}
			if f.Check != ID || f.Subject.Key() != "gpu/GPU-1" {
				t.Errorf("a finding of %s about %s", f.Check, f.Subject.Key())
			}
			if read := tt.reading.Have == checks.Read; read != (f.Evidence != "") {
				t.Errorf("evidence %q", f.Evidence)
			}
		})
	}
}

func TestThreeFixtures(t *testing.T) {
	one := func(r Reading) []checks.Finding {
		return []checks.Finding{Judge(gpu, r, policy.RetiredPages{Full: 63, Watch: 15})}
	}
	checktest.Three(t, ID, one(Reading{Have: checks.Read}), one(Reading{Have: checks.Read, Double: 63}), one(Reading{Err: "timeout"}))
}
