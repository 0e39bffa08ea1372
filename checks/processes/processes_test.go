package processes

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/strike"
)

func limits() policy.Processes {
	return policy.Processes{Stuck: policy.Duration(5 * time.Minute), Killed: policy.Duration(time.Minute)}
}

func of(ps ...Process) Reading { return Reading{Have: checks.Read, Sleeping: ps} }

func TestJudge(t *testing.T) {
	const m, s = time.Minute, time.Second
	for _, tt := range []struct {
		name    string
		reading Reading
		want    string // verdict action
		reason  string
	}{
		{"none asleep", of(), "pass none", "no process is stuck in the kernel"},
		{"never read", Reading{}, "unknown none", "processes not read"},
		{"asleep for a moment", of(Process{PID: 1, Name: "dd"}), "pass none", "no process is stuck"},
		{"asleep for almost long enough", of(Process{For: 5*m - s}), "pass none", "no process is stuck"},
		{"asleep for long enough", of(Process{PID: 7, Name: "dd", Wait: "nfs_wait_bit_killable", For: 5 * m}), "pass watch", "process 7 (dd) in nfs_wait_bit_killable has been stuck in the kernel for 5m0s"},
		{"in the driver for almost long enough", of(Process{NVIDIA: true, For: 5*m - s}), "pass none", ""},
		{"in the driver for long enough", of(Process{PID: 9, Name: "nvidia-smi", NVIDIA: true, For: 5 * m}), "fail reboot", "process 9 (nvidia-smi) has been stuck in the GPU driver for 5m0s"},
		{"killed just now", of(Process{Killed: true, For: m - s}), "pass none", ""},
		{"killed, and does not end", of(Process{PID: 8, Name: "python", Killed: true, For: m}), "fail reboot", "process 8 (python) was killed and has not ended for 1m0s"},
		{"one to watch and one fault", of(Process{PID: 1, For: m * 9}, Process{PID: 2, NVIDIA: true, For: m * 9}), "fail reboot", "process 2 () has been stuck in the GPU driver for 9m0s; process 1 ()"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(tt.reading, limits())
			if got := f.Verdict.String() + " " + f.Action.String(); got != tt.want || !strings.Contains(f.Reason, tt.reason) || f.Hard || f.Check != ID {
				t.Errorf("got %s, hard %t, %q; want %s, %q", got, f.Hard, f.Reason, tt.want, tt.reason)
			}
		})
	}
}

// A process counts as asleep while every look finds it so. Another one with its pid begins anew, and so does one that was not looked
// at for a while.
func TestTrack(t *testing.T) {
	book := strike.NewBook("b")
	look := func(at time.Duration, ps ...Process) []Process { return Track(book, at, of(ps...)).Sleeping }
	a, b := Process{PID: 1, Start: 100}, Process{PID: 1, Start: 200}
	look(0, a)
	if got := look(3*time.Minute, a); got[0].For != 3*time.Minute {
		t.Errorf("asleep at every look for %s", got[0].For)
	}
	if got := look(4*time.Minute, b); got[0].For != 0 {
		t.Errorf("a new process with an old pid: %s", got[0].For)
	}
	if len(book.Subjects) != 1 {
		t.Errorf("processes that have ended are remembered: %v", book.Subjects)
	}
	if got := look(7*time.Minute+time.Second, b); got[0].For != 0 {
		t.Errorf("not looked at for more than three minutes: %s", got[0].For)
	}
	look(8 * time.Minute)
	if got := look(9*time.Minute, b); got[0].For != 0 {
		t.Errorf("awake in between: %s", got[0].For)
	}
	before := of(a)
	Track(book, 10*time.Minute, before)
	if Track(book, 11*time.Minute, Reading{Sleeping: []Process{a}}); before.Sleeping[0].For != 0 || len(book.Subjects) != 1 {
		t.Error("the reading itself was changed, or an unread one was taken in")
	}
}

func TestFixtures(t *testing.T) {
	judge := func(r Reading) []checks.Finding { return []checks.Finding{Judge(r, limits())} }
	checktest.Three(t, ID, judge(of()), judge(of(Process{NVIDIA: true, For: time.Hour})), judge(Reading{Err: "EIO"}))
}
