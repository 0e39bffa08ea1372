package modes

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

var gpu = checks.GPU{Node: "gpu001", UUID: "GPU-1", Index: 2, PCI: "0000:3b:00.0"}

func usual(change func(*Reading)) Reading {
	r := Reading{HavePersistence: checks.Read, Persistence: true, HaveCompute: checks.Read, HaveMIG: checks.Read}
	if change != nil {
		change(&r)
	}
	return r
}

func TestJudge(t *testing.T) {
	none := policy.Modes{}
	for _, tt := range []struct {
		name    string
		reading Reading
		limits  policy.Modes
		verdict checks.Verdict
		action  checks.Action
		reason  string
	}{
		{"as usual", usual(nil), none, checks.Pass, checks.None, "persistence=on compute=default mig=off"},
		{"persistence off is watched", usual(func(r *Reading) { r.Persistence = false }), none, checks.Pass, checks.Watch, "persistence mode is off"},
		{"persistence off where policy wants it on", usual(func(r *Reading) { r.Persistence = false }), policy.Modes{RequirePersistence: true}, checks.Fail, checks.FixConfig, "persistence mode is off"},
		{"persistence on where policy wants it", usual(nil), policy.Modes{RequirePersistence: true}, checks.Pass, checks.None, ""},
		{"nothing may compute", usual(func(r *Reading) { r.Compute = Prohibited }), none, checks.Fail, checks.FixConfig, "prohibits every job"},
		{"one process alone, which policy leaves open", usual(func(r *Reading) { r.Compute = ExclusiveProcess }), none, checks.Pass, checks.None, "compute=exclusive_process"},
		{"one process alone, which policy wants", usual(func(r *Reading) { r.Compute = ExclusiveProcess }), policy.Modes{Compute: "exclusive_process"}, checks.Pass, checks.None, ""},
		{"another compute mode than policy wants", usual(nil), policy.Modes{Compute: "exclusive_process"}, checks.Fail, checks.FixConfig, "compute mode default, policy wants exclusive_process"},
		{"a compute mode nobody knows", usual(func(r *Reading) { r.Compute = 9 }), policy.Modes{Compute: "default"}, checks.Fail, checks.FixConfig, "mode_9"},
		{"MIG on where policy leaves it open", usual(func(r *Reading) { r.MIG, r.MIGPending = true, true }), none, checks.Pass, checks.None, "mig=on"},
		{"MIG on where policy wants it off", usual(func(r *Reading) { r.MIG, r.MIGPending = true, true }), policy.Modes{MIG: "off"}, checks.Fail, checks.FixConfig, "MIG mode on, policy wants off"},
		{"MIG off as policy wants", usual(nil), policy.Modes{MIG: "off"}, checks.Pass, checks.None, "mig=off"},
		{"MIG off where policy wants it on", usual(nil), policy.Modes{MIG: "on"}, checks.Fail, checks.FixConfig, "MIG mode off, policy wants on"},
		{"MIG changes with the next reset", usual(func(r *Reading) { r.MIGPending = true }), none, checks.Pass, checks.Watch, "goes on with the next GPU reset"},
		{"no MIG to want off", usual(func(r *Reading) { r.HaveMIG = checks.NotSupported }), policy.Modes{MIG: "off"}, checks.Pass, checks.None, "persistence=on compute=default"},
		{"a fault outranks what was not read", usual(func(r *Reading) { r.HaveMIG, r.Compute = checks.Unread, Prohibited }), none, checks.Fail, checks.FixConfig, "prohibits"},
		{"one not read leaves it open", usual(func(r *Reading) { r.HaveCompute, r.Err = checks.Unread, "timeout" }), none, checks.Unknown, checks.None, "compute mode not read: timeout"},
		{"never asked", Reading{}, none, checks.Unknown, checks.None, "persistence mode, compute mode, MIG mode not read"},
		{"settings nobody read prove nothing", Reading{Compute: Prohibited}, policy.Modes{RequirePersistence: true}, checks.Unknown, checks.None, "not read"},
		{"a GPU without any", Reading{HavePersistence: checks.NotSupported, HaveCompute: checks.NotSupported, HaveMIG: checks.NotSupported}, none, checks.NotApplicable, checks.None, "no modes"},
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

func TestJudgeSoftware(t *testing.T) {
	for _, tt := range []struct {
		name     string
		software Software
		verdict  checks.Verdict
		action   checks.Action
		reason   string
	}{
		{"of one version", Software{Driver: "550.54.15", Library: "12.550.54.15"}, checks.Pass, checks.None, "driver and library are 550.54.15"},
		{"updated without a reboot", Software{Mismatch: true}, checks.Fail, checks.Reboot, "updated without a reboot"},
		{"another version that works", Software{Driver: "550.54.15", Library: "12.550.54.14"}, checks.Pass, checks.Watch, "library 550.54.14 works with kernel driver 550.54.15"},
		{"a library that does not tell", Software{Driver: "550.54.15"}, checks.NotApplicable, checks.None, "does not tell"},
		{"never asked", Software{}, checks.Unknown, checks.None, "driver version not read"},
		{"the library alone proves nothing", Software{Library: "12.550.54.15"}, checks.Unknown, checks.None, "not read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := JudgeSoftware("gpu001", tt.software)
			if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.verdict, tt.action, tt.reason)
			}
			if f.Check != ID || f.Subject.Kind != checks.KindNode || f.Subject.Node != "gpu001" {
				t.Errorf("a finding of %s about %+v", f.Check, f.Subject)
			}
		})
	}
}

func TestThreeFixtures(t *testing.T) {
	one := func(r Reading) []checks.Finding { return []checks.Finding{Judge(gpu, r, policy.Modes{})} }
	checktest.Three(t, ID, one(usual(nil)), one(usual(func(r *Reading) { r.Compute = Prohibited })), one(Reading{Err: "timeout"}))
}
