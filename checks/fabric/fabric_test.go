package fabric

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
)

var gpu = checks.GPU{Node: "gpu001", UUID: "GPU-1", Index: 2, PCI: "0000:3b:00.0"}

func TestJudge(t *testing.T) {
	at := func(s State) Reading { return Reading{Have: checks.Read, State: s} }
	since := func(s, before State) Reading {
		return Reading{Have: checks.Read, State: s, Before: &before, Over: time.Minute}
	}
	healthy := uint32(2 | 2<<2 | 2<<4 | 2<<6 | 1<<8 | 1<<12 | 1<<14)
	health := func(clear, set uint32) Reading {
		return Reading{Have: checks.Read, State: Completed, Health: healthy&^clear | set, Summary: 1}
	}
	for _, tt := range []struct {
		name    string
		reading Reading
		verdict checks.Verdict
		action  checks.Action
		reason  string
	}{
		{"joined, and an old driver that tells no health", at(Completed), checks.Pass, checks.None, "joined the fabric"},
		{"joined and healthy in every part", health(0, 0), checks.Pass, checks.None, "joined"},
		{"no fabric", at(NoFabric), checks.NotApplicable, checks.None, "in no fabric"},
		{"not started, a moment after boot", at(NotStarted), checks.Unknown, checks.None, "not joined the fabric yet"},
		{"in progress, a moment after boot", at(InProgress), checks.Unknown, checks.None, "yet"},
		{"not started a minute ago either: the fabric manager does not run", since(NotStarted, NotStarted), checks.Fail, checks.FixConfig, "nor had it 1m0s ago"},
		{"in progress for a minute", since(InProgress, NotStarted), checks.Fail, checks.FixConfig, "look at the fabric manager"},
		{"thrown out just now", since(InProgress, Completed), checks.Unknown, checks.None, "yet"},
		{"joined at last", since(Completed, InProgress), checks.Pass, checks.None, "joined"},
		{"joining failed", Reading{Have: checks.Read, State: Completed, Status: 999}, checks.Fail, checks.FixConfig, "NVML error 999"},
		{"a state of a newer driver is not healthy", at(4), checks.Unknown, checks.None, "fabric state 4 is not known"},
		{"degraded bandwidth", health(3, 1), checks.Fail, checks.Drain, "bandwidth is degraded"},
		{"a route being recovered", health(3<<2, 1<<2), checks.Pass, checks.Watch, "a route is being recovered"},
		{"an unhealthy route", health(3<<4, 1<<4), checks.Fail, checks.Drain, "a route is unhealthy"},
		{"an access timeout", health(3<<6, 1<<6), checks.Pass, checks.Watch, "access timeout"},
		{"a wrong system GUID", health(15<<8, 2<<8), checks.Fail, checks.FixConfig, "system GUID"},
		{"a wrong chassis", health(15<<8, 3<<8), checks.Fail, checks.FixConfig, "chassis serial"},
		{"no partition", health(15<<8, 4<<8), checks.Fail, checks.FixConfig, "no partition"},
		{"too few links", health(15<<8, 5<<8), checks.Fail, checks.FixConfig, "too few NVLinks"},
		{"firmware", health(15<<8, 6<<8), checks.Fail, checks.FixConfig, "firmware"},
		{"location", health(15<<8, 7<<8), checks.Fail, checks.FixConfig, "location"},
		{"state", health(15<<8, 8<<8), checks.Fail, checks.FixConfig, "state is invalid"},
		{"the global fabric manager is away", health(3<<14, 2<<14), checks.Pass, checks.Watch, "global fabric manager"},
		{"the severer of two", health(3|15<<8, 1|4<<8), checks.Fail, checks.Drain, "bandwidth is degraded; no partition"},
		{"a fault outranks what is watched", health(3|3<<2, 1|1<<2), checks.Fail, checks.Drain, "bandwidth"},
		{"unhealthy, and no part says why", Reading{Have: checks.Read, State: Completed, Health: healthy, Summary: 2}, checks.Fail, checks.Drain, "calls it unhealthy"},
		{"limited capacity", Reading{Have: checks.Read, State: Completed, Health: healthy, Summary: 3}, checks.Pass, checks.Watch, "capacity is limited"},
		{"never asked", Reading{}, checks.Unknown, checks.None, "fabric state not read"},
		{"the call failed", Reading{Err: "unknown error", State: Completed}, checks.Unknown, checks.None, "not read: unknown error"},
		{"A100 and earlier", Reading{Have: checks.NotSupported, State: InProgress}, checks.NotApplicable, checks.None, "in no fabric"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(gpu, tt.reading)
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
	one := func(r Reading) []checks.Finding { return []checks.Finding{Judge(gpu, r)} }
	checktest.Three(t, ID, one(Reading{Have: checks.Read, State: Completed}), one(Reading{Have: checks.Read, State: Completed, Status: 1}), one(Reading{Err: "timeout"}))
}
