package policyfile

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/strictyaml"
	"pgregory.net/rapid"
)

func TestLoadStartsFromTheDefault(t *testing.T) {
	p, err := Load("policy.yaml", []byte(`
mode: act
checks:
  ecc: {mode: observe}
inventory: {count: 8, name: NVIDIA H100 80GB HBM3}
xid:
  actions:
    94: reset_gpu
agent:
  interval: 10s
certificate:
  intake: 14d
guard:
`))
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Default()
	want.Mode = policy.Act
	want.Checks = map[string]policy.Check{"ecc": {Mode: policy.Observe}}
	want.Inventory = policy.Inventory{Count: 8, Name: "NVIDIA H100 80GB HBM3"}
	want.XID.Actions = map[int]string{94: "reset_gpu"}
	want.Agent.Interval = policy.Duration(10 * time.Second)
	want.Certificate.Intake = policy.Duration(14 * 24 * time.Hour)
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got  %+v\nwant %+v", p, want)
	}
	if p, err := Load("policy.yaml", nil); err != nil || !reflect.DeepEqual(p, policy.Default()) {
		t.Errorf("an empty file gives %+v, %v", p, err)
	}
}

func TestLoadReportsEveryFaultWithItsLine(t *testing.T) {
	_, err := Load("policy.yaml", []byte(`mode: enforce
version: 3
checks:
  exc: {mode: act}
  ecc: {mode: maybe}
row_remap:
  max_correctible: 3
agent:
  interval: 10
  hung_children: 0
guard: {fleet_hour_share: 2, fleet_day_share: 0.5}
certificate:
  quick: 0s
  quick: 1h
`))
	want := strings.TrimSpace(`
policy.yaml:1:7: mode: "enforce": want one of [off observe act]
policy.yaml:2:1: version: unknown key; known here: mode, checks, inventory, ecc, row_remap, xid, agent, hooks, certificate, guard, lifecycle
policy.yaml:4:3: checks.exc: no such check; there are driver, inventory, recovery, rowremap, ecc, xid, sxid
policy.yaml:5:15: checks.ecc.mode: "maybe": want one of [off observe act]
policy.yaml:7:3: row_remap.max_correctible: unknown key; did you mean max_correctable?
policy.yaml:9:13: agent.interval: duration "10": want a number and a unit, as 30s, 12h or 7d
policy.yaml:10:18: agent.hung_children: 0: want 1 or more
policy.yaml:11:27: guard.fleet_hour_share: 2: want a share above 0 and not above 1, as 0.02 for 2 %
policy.yaml:11:47: guard.fleet_day_share: 0.5: below fleet_hour_share, 2
policy.yaml:13:10: certificate.quick: 0s: want 1s to 365d
policy.yaml:14:3: certificate.quick: given twice; first in line 13`)
	var e *strictyaml.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	if e.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", e, want)
	}
}

func TestPrintReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		text := Print(p)
		back, err := Load("p", text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !reflect.DeepEqual(back, p) {
			t.Fatalf("got  %+v\nwant %+v\nfrom\n%s", back, p, text)
		}
		if again := Print(back); string(again) != string(text) {
			t.Fatalf("printed again it is\n%s\nnot\n%s", again, text)
		}
	})
}

// draw draws a valid policy.
func draw(t *rapid.T) policy.Policy {
	p := policy.Default()
	mode := rapid.SampledFrom([]policy.Mode{policy.Off, policy.Observe, policy.Act})
	share := rapid.Float64Range(0.000001, 1)
	seconds := func(name string, least, most int) policy.Duration {
		return policy.Duration(time.Duration(rapid.IntRange(least, most).Draw(t, name)) * time.Second)
	}
	p.Mode = mode.Draw(t, "mode")
	for _, id := range catalog.IDs() {
		if rapid.Bool().Draw(t, "sets "+id) {
			if p.Checks == nil {
				p.Checks = map[string]policy.Check{}
			}
			p.Checks[id] = policy.Check{Mode: mode.Draw(t, id)}
		}
	}
	p.Inventory = policy.Inventory{Count: rapid.IntRange(0, 16).Draw(t, "count"), Name: text(t, "name"), Driver: text(t, "driver")}
	p.ECC.MaxVolatileCorrected = rapid.Uint64().Draw(t, "corrected")
	p.ECC.RequireEnabled = rapid.Bool().Draw(t, "ecc")
	p.RowRemap.MaxCorrectable = rapid.IntRange(0, 1<<40).Draw(t, "rows")
	for _, code := range rapid.SliceOfNDistinct(rapid.IntRange(1, 1<<31), 0, 4, rapid.ID).Draw(t, "codes") {
		if p.XID.Actions == nil {
			p.XID.Actions = map[int]string{}
		}
		p.XID.Actions[code] = checks.Action(rapid.IntRange(0, int(checks.RMA)).Draw(t, "action")).String()
	}
	p.Agent.Interval = seconds("interval", 1, 3600)
	p.Agent.IncidentGap = seconds("gap", 0, 3600)
	p.Certificate.Intake = seconds("intake", 60, 365*24*3600)
	p.Guard.FleetHourShare = share.Draw(t, "hour")
	p.Guard.FleetDayShare = max(p.Guard.FleetHourShare, share.Draw(t, "day"))
	p.Guard.StormShare = share.Draw(t, "storm")
	p.Lifecycle.DrainJob = rapid.SampledFrom([]string{"wait", "requeue", "kill"}).Draw(t, "job")
	return p
}

// text draws text that a person might write, and text that YAML might misread.
func text(t *rapid.T, label string) string {
	return rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,12}`), rapid.SampledFrom([]string{
		"", "true", "no", "null", "~", "1", "1e3", "0x1f", ".5", "- a", "a: b", "a #b", "#", "'", `"`, `\`, "&a", "*a", "!a", "[", "{", "|", ">", "%", "@", "`", " a", "a ", "\t", "\n", "\r",
		"\x00", "\u0085", "\u2028", "\ufeff", "ä", "550.54.15", "NVIDIA H100 80GB HBM3", "7d", "---", "...", "<<", "=", "y", "inf", "nan", ".nan", ".inf", "2026-01-01", "1:30",
	})).Draw(t, label)
}

// TestDefaultFile holds the built-in policy to the file that people read. Whoever changes a default changes both.
func TestDefaultFile(t *testing.T) {
	want, err := os.ReadFile("testdata/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := Print(policy.Default()); string(got) != string(want) {
		t.Errorf("testdata/default.yaml is not the default, which is\n%s", got)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(Print(policy.Default()))
	for _, s := range []string{"mode: act\n", "xid: {actions: {79: reboot}}", "checks: {ecc: {mode: off}}", "guard: {fleet_hour_share: .nan}", "agent: {interval: -1s}", "lifecycle: {drain_job: [a]}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Load("p", data)
		if err != nil {
			var e *strictyaml.Error
			if !errors.As(err, &e) || len(e.Faults) == 0 {
				t.Fatalf("an error without a fault: %v", err)
			}
			return
		}
		if fs := Validate(p); len(fs) > 0 {
			t.Fatalf("loaded, yet %v", fs)
		}
		back, err := Load("p", Print(p))
		if err != nil {
			t.Fatalf("its print does not load: %v", err)
		}
		if string(Print(back)) != string(Print(p)) {
			t.Fatal("its print reads back as another policy")
		}
	})
}
