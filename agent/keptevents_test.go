package agent

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/xid"
)

// An XID that never came in the kernel log is judged from a capture, anywhere, as the daemon judged it; one that came in both
// ways is one.
func TestCapturedEventsAreJudgedAsTheyWereHeard(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(b *bench)
		log  []string // in the capture
	}{
		{"the event alone", func(b *bench) { b.events <- event79() }, nil},
		{"the line, then the event", func(b *bench) { b.kernel.add(lineXID79); b.wait(time.Millisecond); b.events <- event79() }, []string{lineXID79}},
		{"the event, and its line 20 s after it", func(b *bench) { b.events <- event79(); b.wait(20 * time.Second); b.kernel.add(lineXID79) }, []string{lineXID79}},
		{"the event, and a line of the same much later", func(b *bench) { b.events <- event79(); b.wait(time.Minute); b.kernel.add(lineXID79) }, []string{lineXID79}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.run()
				b.desire(b.desired(1, 5))
				tt.do(b)
				at := time.Now()
				b.wait(eventGrace)
				_, live := b.xids()
				b.end()

				c := Capture{CaptureMeta: CaptureMeta{Node: "gpu-017", BootID: "boot-1", At: at}, Snapshot: wellSnapshot(), Policy: policy.Default(), Events: DriverEvents(b.dir, "boot-1")}
				for i, line := range tt.log {
					c.Kernel = append(c.Kernel, KernelRecord{Seq: uint64(i), At: at, Line: line})
				}
				dir := filepath.Join(t.TempDir(), "cap")
				if _, err := c.Write(dir); err != nil {
					t.Fatal(err)
				}
				again, err := ReadCapture(dir)
				if err != nil {
					t.Fatal(err)
				}
				var got []checks.Finding
				for _, f := range again.Judge(checks.Quick).Findings {
					if f.Check == xid.ID {
						got = append(got, f)
					}
				}
				if len(got) != 1 {
					t.Fatalf("%d findings: %+v", len(got), got)
				}
				g := got[0]
				if g.Verdict != live.Verdict || g.Action != live.Action || g.HardFault() != live.HardFault() || g.Code != 79 || g.Subject.GPUUUID != live.Subject.GPUUUID || max(g.Count, 1) != live.Count {
					t.Errorf("live     %+v\ncaptured %+v", live, g)
				}
				if tt.name == "the event alone" && (g.Reason != live.Reason || g.Evidence != live.Evidence) {
					t.Errorf("live     %q, %q\ncaptured %q, %q", live.Reason, live.Evidence, g.Reason, g.Evidence)
				}
				if got := DriverEvents(b.dir, "boot-2"); got != nil {
					t.Errorf("events of another boot: %+v", got)
				}
			})
		})
	}
}

func TestEventsBesideTheLog(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	line := func(s int, code int) catalog.LogEvent {
		return catalog.LogEvent{Event: xid.Event{PCI: "0000:5e:00.0", Code: code, Link: -1}, At: noon.Add(time.Duration(s) * time.Second)}
	}
	event := func(s int, code int, logged bool) DriverEvent {
		return DriverEvent{PCI: "0000:5e:00.0", Code: code, At: noon.Add(time.Duration(s) * time.Second), Logged: logged}
	}
	for _, tt := range []struct {
		name   string
		log    []catalog.LogEvent
		events []DriverEvent
		want   []int // codes in order; below 0: by NVML
	}{
		{"nothing", nil, nil, nil},
		{"events alone", nil, []DriverEvent{event(0, 79, false), event(1, 119, false)}, []int{-79, -119}},
		{"each at its time", []catalog.LogEvent{line(10, 31), line(30, 43)}, []DriverEvent{event(20, 79, false), event(40, 119, false), event(5, 48, false)}, []int{-48, 31, -79, 43, -119}},
		{"the line within the gap is the event", []catalog.LogEvent{line(0, 79)}, []DriverEvent{event(30, 79, false)}, []int{79}},
		{"the line outside the gap is another", []catalog.LogEvent{line(0, 79)}, []DriverEvent{event(31, 79, false)}, []int{79, -79}},
		{"the kernel's clock has run away: the line was known when it came", []catalog.LogEvent{line(0, 79)}, []DriverEvent{event(300, 79, true)}, []int{79}},
		{"the log has forgotten the line", []catalog.LogEvent{line(0, 31)}, []DriverEvent{event(300, 79, true)}, []int{31, -79}},
		{"another code's line", []catalog.LogEvent{line(0, 95)}, []DriverEvent{event(0, 79, false)}, []int{95, -79}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := withEvents(tt.log, tt.events, 30*time.Second)
			if len(got) != len(tt.want) {
				t.Fatalf("got %+v, want %v", got, tt.want)
			}
			for i, l := range got {
				x := l.Event.(xid.Event)
				if code := tt.want[i]; x.Code != max(code, -code) || x.NVML != (code < 0) {
					t.Errorf("%d: got %+v, want %d", i, x, code)
				}
			}
		})
	}
}

func TestKeptEventsAreBounded(t *testing.T) {
	kept := keepEvent(nil, event79())
	for range 3 * maxKeptEvents {
		kept = keepEvent(kept, DriverEvent{PCI: "0000:5e:00.0", Code: 45})
	}
	if len(kept) != maxKeptEvents || kept[0].Code != 79 {
		t.Errorf("%d kept, the first %+v: a flood of one code drives out another", len(kept), kept[0])
	}
	for code := range 3 * maxKeptEvents {
		kept = keepEvent(kept, DriverEvent{PCI: "0000:5e:00.0", Code: 1000 + code})
	}
	if len(kept) != maxKeptEvents || kept[maxKeptEvents-1].Code != 999+3*maxKeptEvents {
		t.Errorf("%d kept, the last %+v", len(kept), kept[len(kept)-1])
	}
}
