package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/rowremap"
	"github.com/assay-gpu/assay/checks/xid"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// kept writes a fault as history does.
func kept(node string, after time.Duration, f checks.Finding) wire.HistoryEntry {
	at := lifecycle.At{Time: noon.Add(after)}
	var ev lifecycle.Event = lifecycle.SoftFault{At: at, Finding: f}
	if f.Hard {
		ev = lifecycle.HardFault{At: at, Finding: f}
	}
	return wire.HistoryEntry{At: at.Time, Node: node, Event: fmt.Sprint(ev)}
}

// rows is the fault of a GPU with so many rows remapped, as the built-in policy judges it.
func rows(n int) checks.Finding {
	return rowremap.Judge(checks.GPU{UUID: "GPU-1"}, rowremap.Reading{Have: checks.Read, Correctable: n}, policy.Default().RowRemap)
}

func line(t *testing.T, text string) checks.Finding {
	e, ok := xid.Parse("NVRM: Xid (PCI:0000:01:00): " + text)
	if !ok {
		t.Fatal(text)
	}
	return xid.Judge(e, policy.XID{})
}

func TestRun(t *testing.T) {
	bare := checks.Finding{Check: "driver", Verdict: checks.Fail, Action: checks.Reboot, Hard: true, Reason: "lost"}
	config := checks.Finding{Check: "inventory", Verdict: checks.Fail, Action: checks.FixConfig, Reason: "another driver"}
	history := []wire.HistoryEntry{
		kept("a1", -time.Hour, rows(30)), // before the time looked at
		kept("a1", time.Minute, rows(12)),
		kept("a1", 2*time.Minute, rows(14)),
		kept("a2", 3*time.Minute, line(t, "79, GPU has fallen off the bus.")),
		{At: noon.Add(4 * time.Minute), Node: "a2", Event: "expired"},
		{At: noon.Add(4 * time.Minute), Event: "policy version=4 mode=observe", By: "ann"},
		kept("a3", 2*time.Hour, config),
		kept("a4", 3*time.Hour, bare),
		{At: noon.Add(3 * time.Hour), Node: "a5", Event: "hard_fault of=another form"},
		kept("a1", 25*time.Hour, rows(99)), // after
	}
	for _, tt := range []struct {
		name   string
		change func(*policy.Policy)
		want   string // node reason faults now>would, one a line; then the nodes
	}{
		{"the policy in force", func(*policy.Policy) {}, "a1 rowremap 2 observe>observe\na2 xid 79 1 observe>observe\na3 inventory 1 observe>observe\na4 driver 1 observe>observe\n[]"},
		{"all act", func(p *policy.Policy) { p.Mode = policy.Act }, "a1 rowremap 2 observe>drain\na2 xid 79 1 observe>drain\na3 inventory 1 observe>drain\na4 driver 1 observe>drain\n[a1 a2 a3 a4]"},
		{"a threshold that one of two faults is above", func(p *policy.Policy) { p.Mode, p.RowRemap.MaxCorrectable = policy.Act, 13 },
			"a1 rowremap 2 observe>drain\na2 xid 79 1 observe>drain\na3 inventory 1 observe>drain\na4 driver 1 observe>drain\n[a1 a2 a3 a4]"},
		{"a threshold that both are below", func(p *policy.Policy) { p.Mode, p.RowRemap.MaxCorrectable = policy.Act, 14 },
			"a1 rowremap 2 observe>none\na2 xid 79 1 observe>drain\na3 inventory 1 observe>drain\na4 driver 1 observe>drain\n[a2 a3 a4]"},
		{"an XID that is only watched", func(p *policy.Policy) { p.Mode, p.XID.Actions = policy.Act, map[int]string{79: "watch"} },
			"a1 rowremap 2 observe>drain\na2 xid 79 1 observe>none\na3 inventory 1 observe>drain\na4 driver 1 observe>drain\n[a1 a3 a4]"},
		{"one check acts, one is off, one's faults are watched", func(p *policy.Policy) {
			p.Checks = map[string]policy.Check{"rowremap": {Mode: policy.Act}, "driver": {Mode: policy.Off}, "inventory": {Action: "watch"}}
		}, "a1 rowremap 2 observe>drain\na2 xid 79 1 observe>observe\na3 inventory 1 observe>none\na4 driver 1 observe>off\n[a1]"},
		{"for some nodes of a product", func(p *policy.Policy) {
			var s policy.Set
			if err := json.Unmarshal([]byte(`{"mode":"act"}`), &s); err != nil {
				t.Fatal(err)
			}
			p.Overrides = []policy.Override{{Name: "x", SKU: []string{"H100"}, Nodes: []string{"a[1-2]"}, Set: s}}
		}, "a1 rowremap 2 observe>observe\na2 xid 79 1 observe>drain\na3 inventory 1 observe>observe\na4 driver 1 observe>observe\n[a2]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := Input{Entries: history, From: noon, To: noon.Add(24 * time.Hour), SKU: map[string]string{"a1": "NVIDIA L40S", "a2": "NVIDIA H100", "a3": "NVIDIA H100"}, Now: policy.Default(), New: policy.Default()}
			tt.change(&in.New)
			r := Run(in)
			var got []string
			for _, c := range r.Cases {
				got = append(got, fmt.Sprintf("%s %s %d %s>%s", c.Node, c.Reason, c.Faults, c.Now, c.Would))
			}
			got = append(got, fmt.Sprint(r.Would))
			if text := strings.Join(got, "\n"); text != tt.want {
				t.Errorf("got\n%s\nwant\n%s", text, tt.want)
			}
			if r.Faults != 5 || len(r.Now) != 0 {
				t.Errorf("%d faults, in force takes %v", r.Faults, r.Now)
			}
		})
	}
}

func TestMostNodesInAnHour(t *testing.T) {
	in := Input{From: noon, To: noon.Add(24 * time.Hour), Now: policy.Default(), New: policy.Default()}
	in.New.Mode = policy.Act
	for i, after := range []time.Duration{0, 30 * time.Minute, time.Hour, time.Hour + 1, 3 * time.Hour} {
		in.Entries = append(in.Entries, kept(fmt.Sprint("n", i), after, rows(11)), kept("n0", after, rows(11)))
	}
	if r := Run(in); r.Hour != 3 || len(r.Would) != 5 || r.Cases[0].Faults != 6 || !r.Cases[0].First.Equal(noon) {
		t.Errorf("%d within an hour of %v; %+v", r.Hour, r.Would, r.Cases[0])
	}
}

func TestWhatHistoryCannotTellIsSaid(t *testing.T) {
	now := policy.Default()
	now.Checks = map[string]policy.Check{"ecc": {Mode: policy.Off}}
	next := policy.Default()
	next.ECC.MaxVolatileCorrected, next.Guard.StormNodes = 7, 4
	odd := checks.Finding{Check: "driver", Verdict: checks.Fail, Action: checks.Reboot, Hard: true, Reason: "lost"}
	in := Input{From: noon, To: noon.Add(time.Hour), Now: now, New: next, Entries: []wire.HistoryEntry{
		{At: noon.Add(time.Minute), Event: "policy version=9 mode=act"}, kept("a", 2*time.Minute, odd),
	}}
	said := Run(in).Blind
	for _, want := range []string{"history begins at 2026-03-01T12:01:00Z", "ecc is off now", "thresholds differ (ecc.max_volatile_corrected)", "of driver the readings were not kept", "(version 9)", "readings that passed", "the guard is not played"} {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%q is not said in\n%s", want, strings.Join(said, "\n"))
		}
	}
	in = Input{From: noon, To: noon.Add(time.Hour), Now: next, New: next}
	said = Run(in).Blind
	if !slices.Contains(said, "history holds nothing of this time") || len(said) != 4 {
		t.Errorf("said\n%s", strings.Join(said, "\n"))
	}
}
