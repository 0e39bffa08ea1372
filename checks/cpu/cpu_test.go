package cpu

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

func read(online, learned int, clock string) Reading {
	return Reading{Have: checks.Read, Online: online, Learned: learned, Clock: clock}
}

func TestJudge(t *testing.T) {
	clocks := policy.CPU{Clocks: "tsc kvm-clock"}
	for _, tt := range []struct {
		name    string
		reading Reading
		policy  policy.CPU
		want    string // verdict action
		reason  string
	}{
		{"all at work", read(192, 192, "tsc"), clocks, "pass none", "192 processors, time from tsc"},
		{"one fewer than it has shown", read(191, 192, "tsc"), clocks, "fail drain", "191 processors at work, this node has shown 192"},
		{"as many as policy wants", read(96, 192, "tsc"), policy.CPU{Count: 96}, "pass none", ""},
		{"one fewer than policy wants", read(95, 0, "tsc"), policy.CPU{Count: 96}, "fail drain", "policy wants 96"},
		{"another clock that will do", read(1, 1, "kvm-clock"), clocks, "pass none", ""},
		{"a clock that will not do", read(1, 1, "hpet"), clocks, "fail fix_config", "from hpet, policy wants tsc or kvm-clock"},
		{"any clock will do", read(1, 1, "hpet"), policy.CPU{}, "pass none", ""},
		{"a clock that could not be read", Reading{Have: checks.Read, Online: 1, ClockErr: "EIO"}, clocks, "unknown none", "clock source not read: EIO"},
		{"a clock nobody asks for could not be read", Reading{Have: checks.Read, Online: 1, ClockErr: "EIO"}, policy.CPU{}, "pass none", ""},
		{"both", read(1, 2, "hpet"), clocks, "fail drain", "1 processors at work, this node has shown 2; the kernel takes its time from hpet"},
		{"never read", Reading{Online: 192, Clock: "tsc"}, clocks, "unknown none", "processors not read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(tt.reading, tt.policy)
			if got := f.Verdict.String() + " " + f.Action.String(); got != tt.want || !strings.Contains(f.Reason, tt.reason) || f.Hard || f.Check != ID {
				t.Errorf("got %s, hard %t, %q; want %s, %q", got, f.Hard, f.Reason, tt.want, tt.reason)
			}
		})
	}
}

func TestTrack(t *testing.T) {
	learned := 0
	Track(&learned, read(192, 0, ""))
	if r := Track(&learned, read(96, 0, "")); r.Learned != 192 {
		t.Errorf("%+v", r)
	}
	if r := Track(&learned, Reading{Online: 999}); r.Learned != 192 {
		t.Errorf("a count nobody read was learned: %+v", r)
	}
}

func TestFixtures(t *testing.T) {
	judge := func(r Reading) []checks.Finding { return []checks.Finding{Judge(r, policy.CPU{Clocks: "tsc"})} }
	checktest.Three(t, ID, judge(read(8, 8, "tsc")), judge(read(7, 8, "tsc")), judge(Reading{Err: "EIO"}))
}
