package thermal

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

var gpu = checks.GPU{Node: "gpu001", UUID: "GPU-1", Index: 2, PCI: "0000:3b:00.0"}

func TestJudge(t *testing.T) {
	var none policy.Thermal
	untold := Degrees{Have: checks.NotSupported}
	old := func(core int) Reading { // an A100
		return Reading{Core: At(core), Slowdown: At(97), Operating: At(85), Memory: At(60), MemoryMax: At(95)}
	}
	own := func(margin int) Reading { // an H100
		return Reading{Core: At(87 - margin), Margin: At(margin), SlowdownMargin: At(-2), OperatingMargin: At(0), Memory: untold}
	}
	memory := func(c int) Reading {
		r := old(50)
		r.Memory.C = c
		return r
	}
	for _, tt := range []struct {
		name    string
		reading Reading
		limits  policy.Thermal
		verdict checks.Verdict
		action  checks.Action
		reason  string
	}{
		{"cool", old(40), none, checks.Pass, checks.None, "core 57 °C from slowdown at 97 °C"},
		{"sample 21: 1 °C below the maximum operating temperature, 41 below slowdown", Reading{Core: At(56), Slowdown: At(97), Operating: At(57), Memory: untold}, none, checks.Pass, checks.None, "core 41 °C from slowdown"},
		{"at the maximum operating temperature", old(85), none, checks.Pass, checks.None, "core 12 °C"},
		{"beyond it", old(86), none, checks.Pass, checks.Watch, "core beyond its maximum operating temperature"},
		{"one below slowdown", old(96), none, checks.Pass, checks.Watch, "beyond"},
		{"at slowdown", old(97), none, checks.Fail, checks.Drain, "core 0 °C from slowdown at 97 °C, 0 or less is a fault"},
		{"policy wants more room", old(87), policy.Thermal{MinMargin: 10}, checks.Fail, checks.Drain, "core 10 °C from slowdown at 97 °C, 10 or less"},
		{"just as much room as policy wants", old(86), policy.Thermal{MinMargin: 10}, checks.Pass, checks.Watch, ""},
		{"its own margin outranks the thresholds", Reading{Core: At(99), Margin: At(5), SlowdownMargin: At(-2), Slowdown: At(97), Memory: untold}, none, checks.Pass, checks.None, "core 7 °C from slowdown at a margin of -2 °C"},
		{"a margin of 0 is the maximum operating temperature", own(0), none, checks.Pass, checks.Watch, "beyond its maximum operating temperature"},
		{"a margin of 1", own(1), none, checks.Pass, checks.None, "core 3 °C from slowdown"},
		{"one above the margin at which it slows down", own(-1), none, checks.Pass, checks.Watch, "beyond"},
		{"at it", own(-2), none, checks.Fail, checks.Drain, "core 0 °C from slowdown at a margin of -2 °C"},
		{"a margin without its threshold", Reading{Core: At(80), Margin: At(1), Memory: untold}, none, checks.Pass, checks.None, "core 1 °C from slowdown by its own margin"},
		{"and none left", Reading{Core: At(80), Margin: At(0)}, none, checks.Fail, checks.Drain, "core 0 °C from slowdown by its own margin"},
		{"a margin is enough", Reading{Margin: At(20), SlowdownMargin: At(-2), Memory: untold}, none, checks.Pass, checks.None, "core 22 °C"},
		{"memory at its maximum", memory(95), none, checks.Pass, checks.None, ""},
		{"memory above it", memory(96), none, checks.Fail, checks.Drain, "memory at 96 °C, above its maximum operating temperature of 95 °C"},
		{"memory without a maximum", Reading{Core: At(50), Slowdown: At(97), Memory: At(120), MemoryMax: untold}, none, checks.Pass, checks.None, ""},
		{"memory whose maximum was not read", Reading{Core: At(50), Slowdown: At(97), Memory: At(120)}, none, checks.Unknown, checks.None, "memory at 120 °C; its limit was not read"},
		{"memory that was not read", Reading{Core: At(50), Slowdown: At(97), Memory: Degrees{Err: "no answer"}, MemoryMax: At(95)}, none, checks.Unknown, checks.None, "memory temperature not read: no answer"},
		{"a core that is too hot is, whatever the memory", Reading{Core: At(97), Slowdown: At(97)}, none, checks.Fail, checks.Drain, "core 0 °C from slowdown"},
		{"memory at 0 °C is none that tells", Reading{Core: At(50), Slowdown: At(97), Memory: At(0), MemoryMax: At(95)}, none, checks.Pass, checks.None, ""},
		{"memory as hot as policy allows", memory(90), policy.Thermal{MaxMemory: 90}, checks.Pass, checks.None, ""},
		{"memory hotter than policy allows", memory(91), policy.Thermal{MaxMemory: 90}, checks.Fail, checks.Drain, "memory at 91 °C, above 90 °C by policy"},
		{"a core as hot as policy allows", old(75), policy.Thermal{MaxCore: 75}, checks.Pass, checks.None, ""},
		{"a core hotter than policy allows", old(76), policy.Thermal{MaxCore: 75}, checks.Fail, checks.Drain, "core at 76 °C, above 75 °C by policy"},
		{"a policy of 1 °C is one", old(2), policy.Thermal{MaxCore: 1}, checks.Fail, checks.Drain, "above 1 °C"},
		{"a policy of 1 °C for memory is one", memory(2), policy.Thermal{MaxMemory: 1}, checks.Fail, checks.Drain, "above 1 °C"},
		{"no limit known", Reading{Core: At(50), Memory: untold}, none, checks.Unknown, checks.None, "tells no limit"},
		{"no limit known but policy's", Reading{Core: At(50), Memory: untold}, policy.Thermal{MaxCore: 75}, checks.Pass, checks.None, "core at 50 °C"},
		{"a threshold of 0 is none", Reading{Core: At(50), Slowdown: At(0)}, none, checks.Unknown, checks.None, "tells no limit"},
		{"0 °C is not believed", old(0), none, checks.Unknown, checks.None, "reads 0 °C, which is not reliable"},
		{"never asked", Reading{}, none, checks.Unknown, checks.None, "core temperature not read"},
		{"the call failed", Reading{Core: Degrees{Err: "timeout", C: 120}, Slowdown: At(97)}, none, checks.Unknown, checks.None, "not read: timeout"},
		{"a virtual GPU", Reading{Core: Degrees{Have: checks.NotSupported}}, none, checks.NotApplicable, checks.None, "tells no temperature"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(gpu, tt.reading, tt.limits)
			if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.verdict, tt.action, tt.reason)
			}
			if f.Check != ID || f.Subject.Key() != "gpu/GPU-1" {
				t.Errorf("a finding of %s about %s", f.Check, f.Subject.Key())
			}
		})
	}
}

func TestThreeFixtures(t *testing.T) {
	one := func(r Reading) []checks.Finding { return []checks.Finding{Judge(gpu, r, policy.Thermal{})} }
	checktest.Three(t, ID, one(Reading{Core: At(40), Slowdown: At(90), Memory: At(40), MemoryMax: At(95)}), one(Reading{Core: At(90), Slowdown: At(90)}), one(Reading{Core: Degrees{Err: "timeout"}}))
}
