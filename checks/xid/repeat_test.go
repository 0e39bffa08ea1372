package xid

import (
	"fmt"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

func TestRepeats(t *testing.T) {
	p := policy.XID{SameTPC: 2, SameGPU: 3, RepeatWindow: policy.Duration(24 * time.Hour)}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	type line struct {
		at   time.Duration
		gpu  string
		pid  int
		text string // of XID 13; empty: XID 31
	}
	exception := func(h float64, gpu string, pid, gpc, tpc int) line {
		return line{time.Duration(h * float64(time.Hour)), gpu, pid, fmt.Sprintf("Graphics SM Warp Exception on (GPC %d, TPC %d, SM 0): Illegal Instruction Parameter", gpc, tpc)}
	}
	fault := func(h float64, gpu string, pid int) line {
		return line{time.Duration(h * float64(time.Hour)), gpu, pid, ""}
	}
	for _, tt := range []struct {
		name  string
		lines []line
		want  bool // whether the last line is a fault
	}{
		{"as many processes on one TPC as allowed", []line{exception(0, "3b", 1, 7, 7), exception(1, "3b", 2, 7, 7)}, false},
		{"one more is suspect", []line{exception(0, "3b", 1, 7, 7), exception(1, "3b", 2, 7, 7), exception(2, "3b", 3, 7, 7)}, true},
		{"one process may say it often", []line{exception(0, "3b", 1, 7, 7), exception(1, "3b", 1, 7, 7), exception(2, "3b", 1, 7, 7), exception(3, "3b", 1, 7, 7)}, false},
		{"processes the driver does not name, at once", []line{exception(0, "3b", 0, 7, 7), exception(0.1, "3b", 0, 7, 7), exception(0.2, "3b", 0, 7, 7)}, false},
		{"and apart", []line{exception(0, "3b", 0, 7, 7), exception(1, "3b", 0, 7, 7), exception(2, "3b", 0, 7, 7)}, true},
		{"another TPC each time", []line{exception(0, "3b", 1, 7, 7), exception(1, "3b", 2, 6, 7), exception(2, "3b", 3, 7, 6)}, false},
		{"several TPCs at once are a job's", []line{exception(0, "3b", 1, 7, 7), exception(1, "3b", 2, 7, 7), exception(2, "3b", 3, 6, 1), exception(2, "3b", 3, 7, 7)}, false},
		{"another GPU shows the same", []line{exception(0, "3b", 1, 7, 7), exception(1, "3b", 2, 7, 7), exception(1.5, "5e", 4, 1, 1), exception(2, "3b", 3, 7, 7)}, false},
		{"another GPU showed it long ago", []line{exception(0, "5e", 4, 1, 1), exception(23, "3b", 1, 7, 7), exception(24, "3b", 2, 7, 7), exception(24.001, "3b", 3, 7, 7)}, true},
		{"the first at the window's end", []line{exception(0, "3b", 1, 7, 7), exception(1, "3b", 2, 7, 7), exception(24, "3b", 3, 7, 7)}, true},
		{"and just out of it", []line{exception(0, "3b", 1, 7, 7), exception(1, "3b", 2, 7, 7), exception(24.0002, "3b", 3, 7, 7)}, false},
		{"page faults on one GPU, as many as allowed", []line{fault(0, "3b", 1), fault(1, "3b", 2), fault(2, "3b", 3)}, false},
		{"and one more", []line{fault(0, "3b", 1), fault(1, "3b", 2), fault(2, "3b", 3), fault(3, "3b", 4)}, true},
		{"page faults on two GPUs are a job's", []line{fault(0, "3b", 1), fault(1, "3b", 2), fault(2, "3b", 3), fault(2, "5e", 3), fault(3, "3b", 4)}, false},
		{"exceptions and page faults do not add up", []line{exception(0, "3b", 1, 7, 7), exception(1, "3b", 2, 7, 7), fault(2, "3b", 3)}, false},
		{"an exception that names no TPC", []line{{0, "3b", 1, "Graphics Exception: ESR 0x57c730"}, {1, "3b", 2, "x"}, {2, "3b", 3, "x"}, {3, "3b", 4, "x"}}, false},
	} {
		var r Repeats
		var f checks.Finding
		for _, l := range tt.lines {
			code, text := 31, "MMU Fault"
			if l.text != "" {
				code, text = 13, l.text
			}
			e, ok := Parse(fmt.Sprintf("NVRM: Xid (PCI:0000:%s:00): %d, pid=%d, name=a, %s", l.gpu, code, l.pid, text))
			if !ok {
				t.Fatal(l)
			}
			n, part := r.See(e, start.Add(l.at), p)
			f = Suspect(Judge(e, p), n, part, p)
		}
		if got := f.Verdict == checks.Fail; got != tt.want || got && (f.Action != checks.Drain || f.Hard) {
			t.Errorf("%s: %v %v hard %t: %s", tt.name, f.Verdict, f.Action, f.Hard, f.Reason)
		}
	}
	own := p
	own.Actions = map[int]string{31: "none"}
	e, _ := Parse("NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=a, MMU Fault")
	if f := Suspect(Judge(e, own), 99, "", own); f.Verdict == checks.Fail {
		t.Error("a site's own action does not stand")
	}
}

// Whatever comes, what is remembered is bounded.
func TestRepeatsAreBounded(t *testing.T) {
	p := policy.XID{RepeatWindow: policy.Duration(time.Hour)}
	var r Repeats
	for i := range 5000 {
		e := Event{Code: 31, PCI: fmt.Sprintf("0000:%02x:00.0", i%100), PID: i + 1}
		r.See(e, time.Unix(int64(i)/10, 0), p)
		if len(r.seen) > maxParts+1 || len(r.seen[repeatKey{e.PCI, 31}]) > maxRepeats {
			t.Fatalf("%d parts, %d occurrences", len(r.seen), len(r.seen[repeatKey{e.PCI, 31}]))
		}
	}
}
