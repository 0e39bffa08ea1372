package aer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// TestParse prints what Parse reads from lines.
func TestParse(t *testing.T) {
	datadriven.RunTest(t, "testdata/parse", func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		for line := range strings.Lines(d.Input) {
			e, ok := Parse(strings.TrimSuffix(line, "\n"))
			if !ok {
				b.WriteString("no event\n")
				continue
			}
			fmt.Fprintf(&b, "%s %s by %q: %s", [...]string{"received", "found", "bit", "below", "unrecovered"}[e.Kind], e.Device, e.Driver, e.Severity)
			for _, kv := range []struct{ k, v string }{{"source", e.Source}, {"layer", e.Layer}, {"bit", e.Bit}} {
				if kv.v != "" {
					fmt.Fprintf(&b, " %s=%q", kv.k, kv.v)
				}
			}
			if e.Multiple {
				b.WriteString(" multiple")
			}
			b.WriteByte('\n')
		}
		return b.String()
	})
}

func TestJudge(t *testing.T) {
	limits := policy.AER{MaxCorrected: 3, MaxNonFatal: 1, Window: policy.Duration(time.Hour)}
	const port, gpu = "0000:00:02.0", "0000:02:00.0"
	for _, tt := range []struct {
		name    string
		event   Event
		gpu     string
		count   int
		verdict checks.Verdict
		action  checks.Action
		subject string
		reason  string
	}{
		{"a corrected error is watched", Event{Device: port, Severity: Corrected, Layer: "Data Link Layer"}, gpu, 1, checks.NotApplicable, checks.Watch, "gpu/" + gpu, "corrected PCIe error on 0000:00:02.0 above it, Data Link Layer"},
		{"as many as allowed", Event{Device: gpu, Severity: Corrected}, gpu, 3, checks.NotApplicable, checks.Watch, "gpu/" + gpu, "corrected PCIe error"},
		{"one more is suspect", Event{Device: gpu, Severity: Corrected}, gpu, 4, checks.Fail, checks.Drain, "gpu/" + gpu, "corrected PCIe error: 4 within 1h, more than 3"},
		{"a transaction is lost", Event{Device: gpu, Severity: NonFatal}, gpu, 1, checks.NotApplicable, checks.Watch, "gpu/" + gpu, "uncorrected, non-fatal PCIe error"},
		{"too many are lost", Event{Device: gpu, Severity: NonFatal}, gpu, 2, checks.Fail, checks.Drain, "gpu/" + gpu, "uncorrected, non-fatal PCIe error: 2 within 1h, more than 1"},
		{"the link is down", Event{Device: port, Severity: Fatal, Layer: "Transaction Layer"}, gpu, 1, checks.Fail, checks.Drain, "gpu/" + gpu, "fatal PCIe error on 0000:00:02.0 above it, Transaction Layer: the link is down"},
		{"what the drivers make of an error says not how bad it was", Event{Device: port, Kind: Unrecovered}, gpu, 9, checks.NotApplicable, checks.Watch, "gpu/" + gpu, "PCIe error on 0000:00:02.0 above it: the drivers below could not recover"},
		{"above no GPU that is known", Event{Device: port, Severity: Fatal}, "", 1, checks.Fail, checks.Drain, "node/" + port, "fatal PCIe error on 0000:00:02.0: the link is down"},
		{"how bad cannot be told", Event{Device: gpu}, gpu, 999, checks.NotApplicable, checks.Watch, "gpu/" + gpu, "PCIe error"},
	} {
		f := Judge(tt.event, tt.gpu, tt.count, limits)
		if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard || f.Subject.Key() != tt.subject || f.Reason != tt.reason || f.Check != ID {
			t.Errorf("%s: got %v %v hard %t %s %q", tt.name, f.Verdict, f.Action, f.Hard, f.Subject.Key(), f.Reason)
		}
	}
}

func TestTreeGPU(t *testing.T) {
	tree := Tree{
		Parent: map[string]string{
			"0000:02:00.0": "0000:00:02.0",
			"0000:11:00.0": "0000:10:00.0", "0000:12:00.0": "0000:10:01.0", "0000:10:00.0": "0000:00:03.0", "0000:10:01.0": "0000:00:03.0",
			"0000:20:00.0": "0000:21:00.0", "0000:21:00.0": "0000:20:00.0", // a tree read wrong
		},
		GPUs: []string{"0000:02:00.0", "0000:11:00.0", "0000:12:00.0", "0000:20:00.0"},
	}
	for _, tt := range []struct{ name, driver, device, source, want string }{
		{"the GPU itself", "nvidia", "0000:02:00.0", "", "0000:02:00.0"},
		{"another function of its board", "snd_hda_intel", "0000:02:00.1", "", "0000:02:00.0"},
		{"a GPU that the tree does not hold", "nvidia", "0000:99:00.0", "", "0000:99:00.0"},
		{"its root port", "pcieport", "0000:00:02.0", "", "0000:02:00.0"},
		{"its root port, itself the source", "pcieport", "0000:00:02.0", "0000:00:02.0", "0000:02:00.0"},
		{"a root port that names it", "pcieport", "0000:00:03.0", "0000:12:00.0", "0000:12:00.0"},
		{"a root port that names the switch port above it", "pcieport", "0000:00:03.0", "0000:10:01.0", "0000:12:00.0"},
		{"a root port above two", "pcieport", "0000:00:03.0", "", ""},
		{"a port above none", "pcieport", "0000:00:1c.0", "", ""},
		{"a port of a circle", "pcieport", "0000:7f:00.0", "", ""},
	} {
		if got := tree.GPU(Event{Driver: tt.driver, Device: tt.device, Source: tt.source}); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := (Tree{}).GPU(Event{Driver: "pcieport", Device: "0000:00:02.0"}); got != "" {
		t.Errorf("an empty tree knows %s", got)
	}
}

func TestRate(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hour := policy.AER{Window: policy.Duration(time.Hour)}
	var r Rate
	for i := range 5 {
		if n := r.Add(start.Add(time.Duration(i)*10*time.Minute), hour); n != i+1 {
			t.Errorf("after %d events: %d", i+1, n)
		}
	}
	if n := r.Add(start.Add(time.Hour), hour); n != 6 {
		t.Errorf("at the window's end: %d", n)
	}
	if n := r.Add(start.Add(time.Hour+time.Second), hour); n != 6 {
		t.Errorf("just after it the first is gone: %d", n)
	}
	if n := r.Add(start.Add(9*time.Hour), hour); n != 1 {
		t.Errorf("long after: %d", n)
	}
}

// However events come, no more are counted than there were, none older than the window by more than a part of it counts,
// and what is kept is bounded.
func TestRateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := time.Duration(rapid.IntRange(1, 3600).Draw(t, "window")) * time.Second
		at := time.Unix(0, 0)
		var r Rate
		var all []time.Time
		for range rapid.IntRange(1, 200).Draw(t, "events") {
			at = at.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "step")) * time.Second)
			all = append(all, at)
			got := r.Add(at, policy.AER{Window: policy.Duration(window)})
			least, most := 0, 0
			for _, x := range all {
				if at.Sub(x) <= window-window/parts {
					least++
				}
				if at.Sub(x) <= window+window/parts {
					most++
				}
			}
			if got < least || got > most {
				t.Fatalf("%d events, want %d to %d", got, least, most)
			}
			if len(r.parts) > parts+2 {
				t.Fatalf("%d parts are kept", len(r.parts))
			}
		}
	})
}
