package kernel

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

// taint sets the flags of these letters.
func taint(letters string) Reading {
	r := Reading{Have: checks.Read}
	for _, c := range letters {
		r.Taint |= 1 << strings.IndexRune(Letters(), c)
	}
	return r
}

func TestJudge(t *testing.T) {
	p := policy.Kernel{FailTaints: "MBDL", WatchTaints: "W"}
	for _, tt := range []struct {
		name    string
		reading Reading
		want    string // verdict action
		reason  string
	}{
		{"untainted", taint(""), "pass none", `taint "", none of it of concern`},
		{"what the NVIDIA driver sets", Reading{Have: checks.Read, Taint: 12289}, "pass none", `taint "POE"`},
		{"a machine check", Reading{Have: checks.Read, Taint: 16}, "fail reboot", "tainted M: a machine check"},
		{"a bad page", Reading{Have: checks.Read, Taint: 32}, "fail reboot", "tainted B: a bad page"},
		{"an oops", Reading{Have: checks.Read, Taint: 128}, "fail reboot", "tainted D"},
		{"a soft lockup", Reading{Have: checks.Read, Taint: 16384}, "fail reboot", "tainted L: a soft lockup"},
		{"a warning", Reading{Have: checks.Read, Taint: 512}, "pass watch", "tainted W: a kernel warning"},
		{"a warning and an oops", taint("WD"), "fail reboot", "tainted D: the kernel has died once (oops); the kernel is tainted W"},
		{"a flag of a kernel to come", Reading{Have: checks.Read, Taint: 1 << 20}, "pass watch", "a flag not known here (1048576)"},
		{"the last flag that is known", taint("J"), "pass none", `"J"`},
		{"never read", Reading{Taint: 16}, "unknown none", "kernel taint not read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(tt.reading, p)
			if got := f.Verdict.String() + " " + f.Action.String(); got != tt.want || !strings.Contains(f.Reason, tt.reason) || f.Hard || f.Check != ID {
				t.Errorf("got %s, hard %t, %q; want %s, %q", got, f.Hard, f.Reason, tt.want, tt.reason)
			}
		})
	}
}

// The policy refuses letters that do not stand for a flag, and knows all that do.
func TestPolicyKnowsTheLetters(t *testing.T) {
	p := policy.Default()
	p.Kernel.FailTaints = Letters()
	if fs := policy.Validate(p); len(fs) > 0 {
		t.Errorf("%v", fs)
	}
}

func TestFixtures(t *testing.T) {
	judge := func(r Reading) []checks.Finding { return []checks.Finding{Judge(r, policy.Kernel{FailTaints: "M"})} }
	checktest.Three(t, ID, judge(taint("POE")), judge(taint("M")), judge(Reading{Err: "EIO"}))
}
