package policy

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDefaultIsValid(t *testing.T) {
	p := Default()
	if fs := Validate(p); len(fs) > 0 {
		t.Errorf("%v", fs)
	}
	if p.Mode != Observe {
		t.Errorf("a fresh install is in mode %q, want observe", p.Mode)
	}
	if fs := Validate(Policy{}); len(fs) < 30 {
		t.Errorf("the zero policy has %d faults only: %v", len(fs), fs)
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Policy)
		want   string // path: part of the message
	}{
		{"a mode that does not exist", func(p *Policy) { p.Mode = "enforce" }, `mode: "enforce": want one of [off observe act]`},
		{"no mode", func(p *Policy) { p.Mode = "" }, `mode: "": want`},
		{"a check's mode that does not exist", func(p *Policy) { p.Checks = map[string]Check{"ecc": {Mode: "on"}} }, `checks.ecc.mode: "on"`},
		{"fewer than no GPUs", func(p *Policy) { p.Inventory.Count = -1 }, "inventory.count: -1: want 0 or more"},
		{"more GPUs than nodes have", func(p *Policy) { p.Inventory.Count = 1025 }, "inventory.count: 1025"},
		{"fewer than no rows", func(p *Policy) { p.RowRemap.MaxCorrectable = -1 }, "row_remap.max_correctable: -1"},
		{"more links than GPUs have", func(p *Policy) { p.NVLink.Links = 37 }, "nvlink.links: 37: no GPU has more than 36"},
		{"a rate that is no number", func(p *Policy) { p.NVLink.MaxCRCPerSecond = math.NaN() }, "nvlink.max_crc_per_second: NaN: want a number"},
		{"a rate below zero", func(p *Policy) { p.NVLink.MaxRetriesPerMinute = -1 }, "nvlink.max_retries_per_minute: -1"},
		{"an error rate of more than all bits", func(p *Policy) { p.NVLink.MaxEffectiveBER = 1.5 }, "nvlink.max_effective_ber: 1.5: want a rate above 0"},
		{"lanes that do not exist", func(p *Policy) { p.PCIe.Width = 3 }, "pcie.width: 3: want 1, 2, 4, 8 or 16"},
		{"busy all the time, and more", func(p *Policy) { p.PCIe.BusyPercent = 101 }, "pcie.busy_percent: 101: want 1 to 100"},
		{"busy at rest", func(p *Policy) { p.PCIe.BusyPercent = 0 }, "pcie.busy_percent: 0"},
		{"repeats without end", func(p *Policy) { p.PCIe.RepeatsPerMinuteAndLane.Gen5 = math.Inf(1) }, "pcie.repeats_per_minute_and_lane.gen5: +Inf"},
		{"throttled more than always", func(p *Policy) { p.Clocks.MaxHWShare = 1.1 }, "clocks.max_hw_share: 1.1"},
		{"a margin of nothing would do, one below not", func(p *Policy) { p.Thermal.MinMargin = -1 }, "thermal.min_margin: -1: want 0 to 150"},
		{"hotter than silicon", func(p *Policy) { p.Thermal.MaxMemory = 151 }, "thermal.max_memory: 151"},
		{"a compute mode that does not exist", func(p *Policy) { p.Modes.Compute = "shared" }, `gpu_modes.compute: "shared": want one of [default exclusive_process]`},
		{"a MIG mode that does not exist", func(p *Policy) { p.Modes.MIG = "7g" }, `gpu_modes.mig: "7g": want one of [on off]`},
		{"a table of no pages", func(p *Policy) { p.Retired.Full = 0 }, "retired_pages.full: 0"},
		{"an action that does not exist", func(p *Policy) { p.XID.Actions = map[int]string{79: "explode"} }, `xid.actions.79: action "explode"`},
		{"an XID that does not exist", func(p *Policy) { p.XID.Actions = map[int]string{0: "none"} }, "xid.actions.0: want an XID"},
		{"a way to ask DCGM that does not exist", func(p *Policy) { p.DCGM.Health = "on" }, `dcgm.health: "on": want one of [off standalone embedded]`},
		{"a level of the diagnostic that does not exist", func(p *Policy) { p.DCGM.Screen = 5 }, "dcgm.screen: 5: want 1 to 4"},
		{"a size of golden runs that does not exist", func(p *Policy) { p.Golden.Size = "huge" }, `golden.size: "huge": want one of [full reduced]`},
		{"corpora somewhere", func(p *Policy) { p.Golden.Corpora = "corpora/../7" }, `golden.corpora: "corpora/../7": want a folder's whole path`},
		{"golden kernels with no time", func(p *Policy) { p.Golden.Within = 0 }, "golden.within: "},
		{"a golden record of no kernel", func(p *Policy) { p.Golden.Records = []GoldenRecord{{Kernel: "k01", Capability: 90, By: "me"}} }, `golden.records[0].kernel: "k01"`},
		{"a golden record for no GPU", func(p *Policy) {
			p.Golden.Records = []GoldenRecord{{Kernel: "0123456789abcdef0123456789abcdef", Capability: 9, By: "me"}}
		}, "golden.records[0].capability: 9"},
		{"a golden record that nobody stands for", func(p *Policy) {
			p.Golden.Records = []GoldenRecord{{Kernel: "0123456789abcdef0123456789abcdef", Capability: 90}}
		}, "golden.records[0].by: missing"},
		{"a level of the diagnostic that takes longer than a screen may", func(p *Policy) { p.DCGM.Screen = 3 }, "dcgm.screen: level 3 may take 1h30m, by dcgm.r3, and a screen 30m, by lifecycle.screen_deadline"},
		{"a DCGM code that does not exist", func(p *Policy) { p.DCGM.Actions = map[int]string{0: "none"} }, "dcgm.actions.0: want a DCGM error code"},
		{"a DCGM code's action that does not exist", func(p *Policy) { p.DCGM.Actions = map[int]string{52: "explode"} }, `dcgm.actions.52: action "explode"`},
		{"a user check without a command", user(func(u *UserCheck) { u.Command = nil }), "user_checks.scratch.command: want an executable"},
		{"a user check by a path that is not absolute", user(func(u *UserCheck) { u.Command[0] = "check" }), `user_checks.scratch.command[0]: "check": want an absolute path`},
		{"a user check by a path through ..", user(func(u *UserCheck) { u.Command[0] = "/usr/../bin/x" }), "user_checks.scratch.command[0]"},
		{"a user check's zero byte", user(func(u *UserCheck) { u.Command[1] = "a\x00" }), "user_checks.scratch.command[1]: holds a zero byte"},
		{"a user check's format that does not exist", user(func(u *UserCheck) { u.Format = "xml" }), `user_checks.scratch.format: "xml": want one of [nagios json exit]`},
		{"a user check run without a pause", user(func(u *UserCheck) { u.Every = 1 }), "user_checks.scratch.every: 1ns"},
		{"a user check with no time", user(func(u *UserCheck) { u.Timeout = -1 }), "user_checks.scratch.timeout: -1ns"},
		{"a user check that may print a book", user(func(u *UserCheck) { u.Output = 1<<20 + 1 }), "user_checks.scratch.output: 1048577"},
		{"a user check without memory", user(func(u *UserCheck) { u.Memory = 1 }), "user_checks.scratch.memory: 1: want 1048576"},
		{"a user check's user that can be none", user(func(u *UserCheck) { u.User = "a b" }), `user_checks.scratch.user: "a b"`},
		{"a user check's variable that can be none", user(func(u *UserCheck) { u.Env = map[string]string{"A=": ""} }), "user_checks.scratch.env.A=: want a variable's name"},
		{"a user check's name that can be none", func(p *Policy) { p.UserChecks = map[string]UserCheck{"A": {Command: []string{"/x"}}} }, "user_checks.A: want a name"},
		{"an interval of nothing", func(p *Policy) { p.Agent.Interval = 0 }, "agent.interval: 0s: want 100ms to 1h"},
		{"no child may hang", func(p *Policy) { p.Agent.HungChildren = 0 }, "agent.hung_children: 0"},
		{"a spool too small", func(p *Policy) { p.Agent.SpoolBytes = 1 }, "agent.spool_bytes: 1"},
		{"a budget as long as the hook's", func(p *Policy) { p.Hooks.Budget = Duration(20 * time.Second) }, "hooks.budget: 20s: want 1s to 18s"},
		{"budget and wait longer than the hook's", func(p *Policy) { p.Hooks.PermitWait = Duration(6 * time.Second) }, "hooks.permit_wait: 6s after a suite of 14s: together more than the 19s"},
		{"a fail mode that does not exist", func(p *Policy) { p.Hooks.FailMode = "ajar" }, `hooks.fail_mode: "ajar": want one of [open closed]`},
		{"a certificate of no time", func(p *Policy) { p.Certificate.Quick = 0 }, "certificate.quick: 0s"},
		{"a negative grace", func(p *Policy) { p.Certificate.Grace = -1 }, "certificate.grace: -1ns"},
		{"a share of nothing", func(p *Policy) { p.Guard.FleetHourShare = 0 }, "guard.fleet_hour_share: 0: want a share"},
		{"a share above all", func(p *Policy) { p.Guard.LeafHourShare = 1.01 }, "guard.leaf_hour_share: 1.01"},
		{"a share that is no number", func(p *Policy) { p.Guard.StormShare = math.NaN() }, "guard.storm_share: NaN"},
		{"less a day than an hour", func(p *Policy) { p.Guard.FleetDayShare = 0.01 }, "guard.fleet_day_share: 0.01: below fleet_hour_share, 0.02"},
		{"a storm of no node", func(p *Policy) { p.Guard.StormNodes = 0 }, "guard.storm_nodes: 0"},
		{"a baseline of one node", func(p *Policy) { p.Baseline.MinNodes = 1 }, "baseline.min_nodes: 1: want 2 or more"},
		{"a baseline of half", func(p *Policy) { p.Baseline.Share = 0.5 }, "baseline.share: 0.5: want a share above 0.5"},
		{"a baseline of more than all", func(p *Policy) { p.Baseline.Share = 1.005 }, "baseline.share: 1.005"},
		{"a drain that does what does not exist", func(p *Policy) { p.Lifecycle.DrainJob = "ask" }, `lifecycle.drain_job: "ask": want one of [wait requeue kill]`},
		{"a deadline before now", func(p *Policy) { p.Lifecycle.RebootDeadline = -1 }, "lifecycle.reboot_deadline: -1ns"},
		{"a level that does not exist", func(p *Policy) { p.Lifecycle.HardCaseLevel = "deep" }, `lifecycle.hard_case_level: "deep"`},
		{"no level", func(p *Policy) { p.Lifecycle.SoftCaseLevel = "" }, `lifecycle.soft_case_level: ""`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Default()
			tt.change(&p)
			fs := Validate(p)
			if len(fs) != 1 {
				t.Fatalf("%d faults, want one: %v", len(fs), fs)
			}
			if got := fs[0].Path + ": " + fs[0].Message; !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A field that nobody thought of when a duration, a share or a count was added would pass with any value.
func TestNoFieldGoesUnchecked(t *testing.T) {
	unlimited := map[string]bool{ // every value of these is meaningful
		"Version": true, "Inventory.Name": true, "Inventory.Driver": true, "ECC.MaxVolatileUncorrected": true, "ECC.MaxVolatileCorrected": true,
		"ECC.WatchCorrectedPerHour": true, "ECC.MaxCorrectedPerHour": true, "PCIe.RequireACSOff": true, "Modes.RequirePersistence": true,
		"ECC.RequireEnabled": true, "Lifecycle.AutoRMA": true, "Guard.DryRun": true, "Checks": true, "XID.Actions": true, "XID.NVMLEvents": true, "Fabric.RequireManager": true, "Overrides": true,
		"DCGM.Required": true, "DCGM.Address": true, "DCGM.Actions": true, "Golden.Screen": true, "Golden.Prolog": true, "Golden.TrustSimulated": true, "Golden.Records": true, "UserChecks": true,
		// Checked by TestHostSections.
		"Infiniband.Ignore": true, "Infiniband.Require": true, "Ethernet.Require": true, "Infiniband.Counters": true, "Ethernet.Ignore": true, "Ethernet.Counters": true, "Mounts.Expect": true,
		"NVMe.WatchMediaErrors": true, "Memory.Bytes": true, "Memory.MaxUncorrected": true, "Memory.Corrected.Max": true, "CPU.Clocks": true, "TimeSync.Require": true,
	}
	var walk func(path string, get func(*Policy) reflect.Value, typ reflect.Type)
	walk = func(path string, get func(*Policy) reflect.Value, typ reflect.Type) {
		if typ.Kind() == reflect.Struct {
			for i := range typ.NumField() {
				sub := strings.TrimPrefix(path+"."+typ.Field(i).Name, ".")
				walk(sub, func(p *Policy) reflect.Value { return get(p).Field(i) }, typ.Field(i).Type)
			}
			return
		}
		if unlimited[path] {
			return
		}
		p := Default()
		v := get(&p)
		switch v.Kind() {
		case reflect.String:
			v.SetString("no such word")
		case reflect.Int, reflect.Int64:
			v.SetInt(-1)
		case reflect.Float64:
			v.SetFloat(-1)
		default:
			t.Fatalf("%s: a %s, which this test cannot break", path, v.Type())
		}
		if len(Validate(p)) == 0 {
			t.Errorf("%s = %v is valid", path, v)
		}
	}
	walk("", func(p *Policy) reflect.Value { return reflect.ValueOf(p).Elem() }, reflect.TypeFor[Policy]())
}

func TestABaselineMayBeAllNodesOrJustOverHalf(t *testing.T) {
	for _, share := range []float64{0.505, 1} {
		p := Default()
		p.Baseline.Share = share
		if fs := Validate(p); len(fs) > 0 {
			t.Errorf("%v: %v", share, fs)
		}
	}
}

func TestEveryFaultAtOnceByPath(t *testing.T) {
	p := Default()
	p.Mode, p.Hooks.FailMode, p.Agent.Interval = "x", "y", -1
	var paths []string
	for _, f := range Validate(p) {
		paths = append(paths, f.Path)
	}
	if got := strings.Join(paths, " "); got != "agent.interval hooks.fail_mode mode" {
		t.Errorf("got %s", got)
	}
}

func TestPolicyJSONRoundTrip(t *testing.T) {
	p := Default()
	p.Version, p.XID.Actions, p.Checks = 7, map[int]string{79: "reboot"}, map[string]Check{"ecc": {Mode: Act, Action: "drain", Share: 0.25}}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back Policy
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("%v\n got %+v\nwant %+v", err, back, p)
	}
	if !strings.Contains(string(b), `"interval":"30s"`) || !strings.Contains(string(b), `"intake":"30d"`) {
		t.Errorf("durations are not text: %s", b)
	}
}

// user changes a policy to one with a user check, changed.
func user(change func(*UserCheck)) func(*Policy) {
	return func(p *Policy) {
		u := UserCheck{Command: []string{"/usr/local/sbin/check-scratch", "--quick"}, User: "nobody", Env: map[string]string{"A": "b"}}
		change(&u)
		p.UserChecks = map[string]UserCheck{"scratch": u}
	}
}

func TestUserCheckDefaults(t *testing.T) {
	var u UserCheck
	if u.FormatOr() != FormatNagios || u.EveryOr() != 5*time.Minute || u.TimeoutOr() != 30*time.Second || u.OutputOr() != 65536 || u.MemoryOr() != 1<<30 {
		t.Errorf("%s %v %v %d %d", u.FormatOr(), u.EveryOr(), u.TimeoutOr(), u.OutputOr(), u.MemoryOr())
	}
	p := Default()
	user(func(*UserCheck) {})(&p)
	if fs := Validate(p); len(fs) > 0 {
		t.Errorf("%v", fs)
	}
	p.Mode, p.Checks = Act, map[string]Check{"user": {Mode: Off}, "user/b": {Mode: Observe}}
	if a, b, c := p.ModeOf("user/a"), p.ModeOf("user/b"), p.ModeOf("ecc"); a != Off || b != Observe || c != Act {
		t.Errorf("user/a %s, user/b %s, ecc %s", a, b, c)
	}
	if ids := p.UserIDs(); len(ids) != 1 || ids[0] != "user/scratch" {
		t.Errorf("%v", ids)
	}
}
