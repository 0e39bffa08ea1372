package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
)

func fault(code int, gpu string) checks.Finding {
	return checks.Finding{Check: "xid", Code: code, Subject: checks.Subject{Kind: checks.KindGPU, GPUUUID: gpu}, Verdict: checks.Fail, Action: checks.ResetGPU}
}

func TestLedgerTellsRepeatsEverMoreSeldom(t *testing.T) {
	l := NewLedger()
	var told []string
	for now := time.Duration(0); now <= 30*time.Minute; now += 10 * time.Second {
		if n, due := l.See(fault(48, "GPU-a"), now); due {
			told = append(told, fmt.Sprintf("%s:%d", now, n))
		}
	}
	if got := fmt.Sprint(told); got != "[0s:1 1m0s:7 3m0s:19 7m0s:43 15m0s:91 25m0s:151]" {
		t.Fatalf("told %s", got)
	}
}

func TestLedgerTellsSubjectsAndCodesApart(t *testing.T) {
	l := NewLedger()
	for _, f := range []checks.Finding{fault(48, "GPU-a"), fault(48, "GPU-b"), fault(63, "GPU-a")} {
		if n, due := l.See(f, 0); !due || n != 1 {
			t.Errorf("%d on %s: count %d, due %v", f.Code, f.Subject.GPUUUID, n, due)
		}
	}
}

func TestLedgerTellsWhatBecameWorseAtOnce(t *testing.T) {
	l := NewLedger()
	f := fault(48, "GPU-a")
	f.Verdict, f.Action = checks.Pass, checks.Watch
	l.See(f, 0)
	f.Verdict, f.Action = checks.Fail, checks.Drain
	if _, due := l.See(f, time.Second); !due {
		t.Error("a pass that became a fail is not due")
	}
	f.Hard = true
	if _, due := l.See(f, 2*time.Second); !due {
		t.Error("a soft fault that became hard is not due")
	}
	if _, due := l.See(f, 3*time.Second); due {
		t.Error("the same again is due")
	}
}

func TestLedgerForgetsWhatASnapshotNoLongerShows(t *testing.T) {
	l := NewLedger()
	f := fault(0, "GPU-a")
	f.Check = "ecc"
	if due := l.Cycle([]checks.Finding{f}, 0); len(due) != 1 {
		t.Fatalf("first: %v", due)
	}
	l.See(fault(48, "GPU-a"), 0) // of the kernel log: no snapshot shows it, and none ends it
	l.Cycle(nil, 2*time.Minute)
	if got := l.Faults(); len(got) != 1 || got[0].Code != 48 {
		t.Fatalf("remembered %v", got)
	}
	if due := l.Cycle([]checks.Finding{f}, 3*time.Minute); len(due) != 1 || due[0].Count != 1 {
		t.Fatalf("back again: %v", due)
	}
	// One that flaps faster than a minute is not told more often for that.
	n := 0
	for i := range 12 {
		fs := []checks.Finding{f}
		if i%2 == 0 {
			fs = nil
		}
		n += len(l.Cycle(fs, 3*time.Minute+time.Duration(i+1)*5*time.Second))
	}
	if n > 1 {
		t.Fatalf("a flapping fault was told %d times within a minute", n)
	}
}

func TestLedgerIsBoundedAndKeepsFaults(t *testing.T) {
	l := NewLedger()
	l.See(fault(79, "GPU-a"), 0)
	for i := range 2 * maxLedger {
		f := fault(31, fmt.Sprintf("GPU-%d", i))
		f.Verdict, f.Action = checks.NotApplicable, checks.RestartApp
		l.See(f, time.Duration(i+1))
	}
	if len(l.entries) > maxLedger {
		t.Fatalf("%d entries", len(l.entries))
	}
	if fs := l.Faults(); len(fs) != 1 || fs[0].Code != 79 {
		t.Fatalf("the fault was forgotten: %v", fs)
	}
}

func TestWindowGroupsOverBatches(t *testing.T) {
	w := NewWindow(30*time.Second, 45*time.Second)
	at := time.Unix(1_700_000_000, 0)
	first := fault(79, "GPU-a")
	first.At, first.Hard, first.Action = at, true, checks.Reboot
	a := w.Add([]checks.Finding{first})
	second := fault(48, "GPU-a")
	second.At = at.Add(2 * time.Second)
	b := w.Add([]checks.Finding{second})
	if a[0].Incident == "" || a[0].Incident != b[0].Incident || a[0].Secondary || !b[0].Secondary {
		t.Fatalf("cause %+v, consequence %+v", a[0], b[0])
	}
	later := fault(48, "GPU-a")
	later.At = at.Add(10 * time.Minute)
	if c := w.Add([]checks.Finding{later}); c[0].Incident == a[0].Incident || c[0].Secondary {
		t.Fatalf("ten minutes later: %+v", c[0])
	}
	for i := range 3 * maxWindow {
		f := fault(48, fmt.Sprint(i))
		f.At = at.Add(20 * time.Minute)
		w.Add([]checks.Finding{f})
	}
	if len(w.recent) > maxWindow {
		t.Fatalf("%d in the window", len(w.recent))
	}
}
