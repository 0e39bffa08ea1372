package clocks

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/policy"
)

var gpu = checks.GPU{Node: "gpu001", UUID: "GPU-1", Index: 2, PCI: "0000:3b:00.0"}

func TestJudge(t *testing.T) {
	limits := policy.Clocks{MaxHWShare: 0.10, MaxSWShare: 0.60}
	now := func(r Reasons) Reading { return Reading{Have: checks.Read, Reasons: r} }
	twice := func(r, before Reasons) Reading {
		return Reading{Have: checks.Read, Reasons: r, Before: &before, Over: time.Minute}
	}
	held := func(r Reasons, n Name, d time.Duration) Reading { // of the last 100 s
		return Reading{Have: checks.Read, Reasons: r, Over: 100 * time.Second, Held: map[Name]counter.Reading{n: counter.Of(uint64(time.Hour + d)).After(counter.Of(uint64(time.Hour)))}}
	}
	for _, tt := range []struct {
		name    string
		reading Reading
		verdict checks.Verdict
		action  checks.Action
		reason  string
	}{
		{"sample 21: idle is healthy", now(Idle), checks.Pass, checks.None, "no slowdown"},
		{"nothing holds it back", now(0), checks.Pass, checks.None, "no slowdown"},
		{"power cap, application clocks and sync boost are by design", now(SWPowerCap | ApplicationClocks | SyncBoost), checks.Pass, checks.None, "no slowdown"},
		{"a reason of a newer driver", now(1 << 40), checks.Pass, checks.None, "no slowdown"},
		{"hardware thermal slowdown, at any moment", now(HWThermal | HWSlowdown), checks.Fail, checks.Drain, "hardware thermal slowdown now"},
		{"a power brake at one moment", now(PowerBrake | HWSlowdown), checks.Pass, checks.Watch, "power brake now"},
		{"a power brake at two", twice(PowerBrake|HWSlowdown, PowerBrake), checks.Fail, checks.Drain, "power brake now and 1m0s ago"},
		{"a power brake before, not now", twice(0, PowerBrake), checks.Pass, checks.None, "no slowdown"},
		{"a power brake now, another reason before", twice(PowerBrake, SWThermal), checks.Pass, checks.Watch, "power brake now"},
		{"hardware slowdown alone, at one moment", now(HWSlowdown), checks.Pass, checks.Watch, "hardware slowdown now"},
		{"hardware slowdown alone, at two", twice(HWSlowdown, HWSlowdown), checks.Fail, checks.Drain, "hardware slowdown now and"},
		{"software thermal at one moment", now(SWThermal), checks.Pass, checks.Watch, "software thermal slowdown now"},
		{"software thermal at two", twice(SWThermal, SWThermal), checks.Fail, checks.Drain, "software thermal slowdown now and"},
		{"counted: a power brake for as long as allowed", held(PowerBrake, NamePowerBrake, 10*time.Second), checks.Pass, checks.Watch, "power brake now"},
		{"counted: for longer", held(PowerBrake, NamePowerBrake, 11*time.Second), checks.Fail, checks.Drain, "power brake for 11 % of the last 1m40s, more than 10 %"},
		{"counted: for longer, and over by now", held(0, NamePowerBrake, 11*time.Second), checks.Fail, checks.Drain, "power brake for 11 %"},
		{"counted: heat between two readings", held(0, NameHWThermal, 10*time.Second), checks.Pass, checks.Watch, "hardware thermal slowdown for 10 % of the last 1m40s"},
		{"counted: and for longer", held(0, NameHWThermal, 11*time.Second), checks.Fail, checks.Drain, "hardware thermal slowdown for 11 %"},
		{"counted: software thermal for as long as allowed", held(SWThermal, NameSWThermal, time.Minute), checks.Pass, checks.Watch, "software thermal slowdown now"},
		{"counted: for longer", held(SWThermal, NameSWThermal, 61*time.Second), checks.Fail, checks.Drain, "software thermal slowdown for 61 %"},
		{"counted: no time is no slowdown", held(0, NameSWThermal, 0), checks.Pass, checks.None, "no slowdown"},
		{"a count that was reset says nothing", Reading{Have: checks.Read, Over: time.Minute, Held: map[Name]counter.Reading{NameSWThermal: counter.Of(1).After(counter.Of(1 << 40))}}, checks.Pass, checks.None, ""},
		{"two at once", now(HWThermal | SWThermal), checks.Fail, checks.Drain, "hardware thermal slowdown now"},
		{"never asked", Reading{}, checks.Unknown, checks.None, "clock event reasons not read"},
		{"the call failed", Reading{Err: "timeout", Reasons: HWThermal}, checks.Unknown, checks.None, "not read: timeout"},
		{"a GPU that gives none: absent is not inactive", Reading{Have: checks.NotSupported, Reasons: HWThermal}, checks.NotApplicable, checks.None, "gives no clock event reasons"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(gpu, tt.reading, limits)
			if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.verdict, tt.action, tt.reason)
			}
			if f.Check != ID || f.Subject.Key() != "gpu/GPU-1" {
				t.Errorf("a finding of %s about %s", f.Check, f.Subject.Key())
			}
		})
	}
}

func TestReasonsText(t *testing.T) {
	for r, want := range map[Reasons]string{0: "none", Idle: "idle", HWSlowdown | HWThermal: "hw_slowdown,hw_thermal", PowerBrake | 1<<40: "power_brake,bit40", 0xE8: "hw_slowdown,sw_thermal,hw_thermal,power_brake"} {
		if got := r.String(); got != want {
			t.Errorf("%#x: %q, want %q", uint64(r), got, want)
		}
	}
}

func TestThreeFixtures(t *testing.T) {
	one := func(r Reading) []checks.Finding {
		return []checks.Finding{Judge(gpu, r, policy.Clocks{MaxHWShare: 0.1, MaxSWShare: 0.6})}
	}
	checktest.Three(t, ID, one(Reading{Have: checks.Read, Reasons: Idle}), one(Reading{Have: checks.Read, Reasons: HWThermal}), one(Reading{Err: "timeout"}))
}
