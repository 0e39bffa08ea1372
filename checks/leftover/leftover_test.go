package leftover

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
)

var gpu = checks.GPU{Node: "gpu001", UUID: "GPU-1", Index: 2, PCI: "0000:3b:00.0"}

func on(pids ...int) Reading {
	r := Reading{Have: checks.Read}
	for _, p := range pids {
		r.Processes = append(r.Processes, Process{PID: p})
	}
	return r
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name    string
		reading Reading
		before  []int
		verdict checks.Verdict
		action  checks.Action
		reason  string
	}{
		{"none is left", on(), []int{}, checks.Pass, checks.None, "no process is left"},
		{"none is left, whatever was before", on(), nil, checks.Pass, checks.None, "no process is left"},
		{"one is left", on(4711), []int{}, checks.Fail, checks.Drain, "left by the job: process 4711"},
		{"with its memory", Reading{Have: checks.Read, Processes: []Process{{4711, 3 << 30}}}, []int{}, checks.Fail, checks.Drain, "process 4711 with 3072 MiB"},
		{"a daemon that was there before", on(12), []int{12}, checks.Pass, checks.None, "no process of the job is left"},
		{"a daemon and two of the job's", on(12, 13, 14), []int{12}, checks.Fail, checks.Drain, "process 13, 14"},
		{"not known what was there before", on(12), nil, checks.Unknown, checks.None, "before the job is not known"},
		{"never asked", Reading{}, []int{}, checks.Unknown, checks.None, "processes not read"},
		{"the call failed", Reading{Err: "no permission", Processes: []Process{{PID: 1}}}, []int{}, checks.Unknown, checks.None, "not read: no permission"},
		{"a GPU that does not tell", Reading{Have: checks.NotSupported}, []int{}, checks.NotApplicable, checks.None, "does not tell"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(gpu, tt.reading, tt.before)
			if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.verdict, tt.action, tt.reason)
			}
			if f.Check != ID || f.Subject.Key() != "gpu/GPU-1" {
				t.Errorf("a finding of %s about %s", f.Check, f.Subject.Key())
			}
		})
	}
}

func TestThreeFixtures(t *testing.T) {
	one := func(r Reading) []checks.Finding { return []checks.Finding{Judge(gpu, r, []int{})} }
	checktest.Three(t, ID, one(on()), one(on(4711)), one(Reading{Err: "timeout"}))
}

func TestPIDs(t *testing.T) {
	if got := on(3, 1, 2).PIDs(); len(got) != 3 || got[0] != 1 || got[2] != 3 {
		t.Errorf("got %v", got)
	}
}
