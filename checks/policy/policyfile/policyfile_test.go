package policyfile

import (
	"encoding/json"
	"errors"
	"fmt"
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
modes: act
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
policy.yaml:2:1: modes: unknown key; did you mean mode?
policy.yaml:4:3: checks.exc: no such check; there are CHECKS
policy.yaml:5:15: checks.ecc.mode: "maybe": want one of [off observe act]
policy.yaml:7:3: row_remap.max_correctible: unknown key; did you mean max_correctable?
policy.yaml:9:13: agent.interval: duration "10": want a number and a unit, as 30s, 12h or 7d
policy.yaml:10:18: agent.hung_children: 0: want 1 or more
policy.yaml:11:27: guard.fleet_hour_share: 2: want a share above 0 and not above 1, as 0.02 for 2 %
policy.yaml:11:47: guard.fleet_day_share: 0.5: below fleet_hour_share, 2
policy.yaml:13:10: certificate.quick: 0s: want 1s to 365d
policy.yaml:14:3: certificate.quick: given twice; first in line 13`)
	want = strings.ReplaceAll(want, "CHECKS", strings.Join(catalog.IDs(), ", "))
	var e *strictyaml.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	if e.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", e, want)
	}
}

// Every fault of every override is told with its line, beside those of the top level.
func TestLoadReportsTheFaultsOfOverrides(t *testing.T) {
	_, err := Load("policy.yaml", []byte(`row_remap: {max_correctable: -1}
overrides:
  - name: a100
    sku: [A100]
    set:
      row_remap:
        max_correctible: 3
      hooks:
        budget: 17s
  - name: a100
    nodes: ["gpu[1-"]
    set:
      guard: {storm_nodes: 1}
      checks:
        exc: {mode: act}
  - set:
      hooks:
        budget: 17s
        permit_wait: 1m
      checks:
        ecc: {share: 0}
        exc: {mode: act}
  - name: spelt otherwise
    sku: [H100]
    set: {xid: {actions: {079: watch}}}
  - {name: nothing, sku: [H100], set: }
  - name: a section that is none
    sku: [H100]
    set: act
`))
	want := strings.TrimSpace(`
policy.yaml:1:30: row_remap.max_correctable: -1: want 0 or more
policy.yaml:7:9: overrides[0].set.row_remap.max_correctible: unknown key; did you mean max_correctable?
policy.yaml:8:7: overrides[0].set.hooks.permit_wait: 4s after a suite of 17s: together more than the 19s that a hook waits
policy.yaml:10:11: overrides[1].name: "a100": overrides[0] has that name
policy.yaml:11:13: overrides[1].nodes[0]: hostlist "gpu[1-": at byte 3: [ without ]
policy.yaml:13:7: overrides[1].set.guard: cannot be set by an override: budgets are the fleet's
policy.yaml:15:9: overrides[1].set.checks.exc: no such check; there are CHECKS
policy.yaml:16:5: overrides[2]: names no nodes: want sku or nodes; what holds for all stands at the top level
policy.yaml:16:5: overrides[2].name: want a name, so that people can tell it from others
policy.yaml:19:22: overrides[2].set.hooks.permit_wait: 1m: want 0s to 18s
policy.yaml:21:22: overrides[2].set.checks.ecc.share: share "0": want a share above 0 and not above 1, as 0.05 or 5%; for none of the nodes use mode: observe
policy.yaml:22:9: overrides[2].set.checks.exc: no such check; there are CHECKS
policy.yaml:25:10: overrides[3].set: xid.actions.079 sets nothing: write it as ` + "`assay policy show`" + ` does
policy.yaml:26:34: overrides[4].set: sets nothing
policy.yaml:29:10: overrides[5].set: "act": want a mapping
`)
	want = strings.ReplaceAll(want, "CHECKS", strings.Join(catalog.IDs(), ", "))
	if err == nil || err.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", err, want)
	}
}

func TestPrintOfAnOverride(t *testing.T) {
	text := `overrides:
  - name: a100
    sku: [A100, "H100 80GB"]
    nodes: ["gpu[001-016]"]
    set:
      mode: act
      checks:
        ecc:
          action: drain
          share: 0.05
      ecc:
        max_volatile_corrected: 18446744073709551615
      xid:
        actions:
          79: watch
      agent:
        interval: 10s
  - name: "all of rack 2"
    nodes: ["gpu[017-032]"]
    set:
      ecc:
        require_enabled: false
`
	p, err := Load("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	printed := string(Print(p))
	if _, got, _ := strings.Cut(printed, "overrides:"); "overrides:"+got != text {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
	if got := p.For("gpu003", "NVIDIA H100 80GB HBM3"); got.ECC.MaxVolatileCorrected != 1<<64-1 || got.XID.Actions[79] != "watch" || got.Agent.Interval.D() != 10*time.Second || !got.ECC.RequireEnabled {
		t.Errorf("%+v", got)
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
			p.Checks[id] = policy.Check{
				Mode: mode.Draw(t, id), Action: rapid.SampledFrom([]string{"", "drain", "none"}).Draw(t, "action of "+id),
				Share: policy.Share(rapid.SampledFrom([]float64{0, 0.01, 0.125, 1}).Draw(t, "share of "+id)),
			}
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
	for i := range rapid.IntRange(0, 3).Draw(t, "overrides") {
		o := policy.Override{Name: fmt.Sprintf("%s%d", text(t, "override"), i), SKU: []string{"H100", "L40S"}}
		if rapid.Bool().Draw(t, "by node") {
			o.Nodes = []string{"gpu[001-004]", "b1"}
		}
		sets := rapid.SampledFrom([]string{
			`{"mode":"act"}`, `{"inventory":{"name":"x: #y","count":8},"ecc":{"max_volatile_corrected":18446744073709551615}}`,
			`{"checks":{"ecc":{"mode":"off"},"xid":{"share":0.3}},"agent":{"interval":"10s","call_deadline":"1m30s"}}`, `{"xid":{"actions":{"7":"none","79":"rma"}}}`,
		})
		if err := json.Unmarshal([]byte(sets.Draw(t, "set")), &o.Set); err != nil {
			t.Fatal(err)
		}
		p.Overrides = append(p.Overrides, o)
	}
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
	for _, s := range []string{"mode: act\n", "xid: {actions: {79: reboot}}", "checks: {ecc: {mode: off}}", "guard: {fleet_hour_share: .nan}", "agent: {interval: -1s}", "lifecycle: {drain_job: [a]}",
		"overrides: [{name: a, sku: [H100], nodes: [\"n[1-3]\"], set: {mode: act, checks: {ecc: {share: 5%}}, xid: {actions: {7: rma}}}}]"} {
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
