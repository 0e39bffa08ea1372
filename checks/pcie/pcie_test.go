package pcie

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/policy"
)

var (
	gpu    = checks.GPU{Node: "gpu001", UUID: "GPU-1", Index: 2, PCI: "0000:3b:00.0"}
	limits = policy.PCIe{BusyPercent: 50, RepeatsPerMinuteAndLane: policy.PCIeRepeats{Gen1: 0.15, Gen2: 0.3, Gen3: 0.48, Gen4: 0.96, Gen5: 1.92, Gen6: 3.84}}
)

func rose(by uint64) counter.Reading { return counter.Of(1000 + by).After(counter.Of(1000)) }

// quiet is a link whose counters were read and stand at zero.
func quiet(r Reading) Reading {
	r.Replays, r.Correctable, r.NonFatal, r.Fatal = counter.Of(0), counter.Of(0), counter.Of(0), counter.Of(0)
	return r
}

func TestJudge(t *testing.T) {
	full := End{Width: 16, Gen: 5}
	link := func(change func(*Reading)) Reading {
		r := quiet(Reading{Have: checks.Read, Width: 16, Gen: 5, Most: full, Port: full, Busy: checks.Read, Over: time.Minute})
		if change != nil {
			change(&r)
		}
		return r
	}
	with := func(change func(*policy.PCIe)) policy.PCIe {
		p := limits
		change(&p)
		return p
	}
	for _, tt := range []struct {
		name    string
		reading Reading
		limits  policy.PCIe
		verdict checks.Verdict
		action  checks.Action
		reason  string
	}{
		{"wide and fast", link(nil), limits, checks.Pass, checks.None, "Gen5 x16"},
		{"half as wide, at rest or not", link(func(r *Reading) { r.Width = 8 }), limits, checks.Fail, checks.Drain, "runs at x8, x16 expected"},
		{"as wide as the port it sits in", link(func(r *Reading) { r.Width, r.Port.Width = 8, 8 }), limits, checks.Pass, checks.None, "Gen5 x8"},
		{"as wide as it can", link(func(r *Reading) { r.Width, r.Most.Width = 8, 8 }), limits, checks.Pass, checks.None, "x8"},
		{"a port that is not known", link(func(r *Reading) { r.Width, r.Port = 8, End{} }), limits, checks.Fail, checks.Drain, "x16 expected"},
		{"neither end known: how wide it should be is not", link(func(r *Reading) { r.Most, r.Port = End{}, End{} }), limits, checks.Unknown, checks.None, "not known"},
		{"policy knows", link(func(r *Reading) { r.Most, r.Port = End{}, End{} }), with(func(p *policy.PCIe) { p.Width = 16 }), checks.Pass, checks.None, "x16"},
		{"narrower than policy wants", link(func(r *Reading) { r.Width, r.Port.Width = 8, 8 }), with(func(p *policy.PCIe) { p.Width = 16 }), checks.Fail, checks.Drain, "x8, x16 expected"},
		{"policy wants one lane", link(func(r *Reading) { r.Width = 1 }), with(func(p *policy.PCIe) { p.Width = 1 }), checks.Pass, checks.None, "x1"},
		{"slow at rest is by design", link(func(r *Reading) { r.Gen, r.Percent, r.Before = 1, 0, &Moment{1, 0} }), limits, checks.Pass, checks.None, "Gen1 x16"},
		{"slow and not quite busy", link(func(r *Reading) { r.Gen, r.Percent, r.Before = 1, 49, &Moment{1, 99} }), limits, checks.Pass, checks.None, "Gen1"},
		{"slow while busy, for the first time", link(func(r *Reading) { r.Gen, r.Percent = 2, 50 }), limits, checks.Pass, checks.Watch, "runs at Gen2 while busy, Gen5 expected; a fault when the next"},
		{"slow while busy, twice", link(func(r *Reading) { r.Gen, r.Percent, r.Before = 2, 50, &Moment{2, 50} }), limits, checks.Fail, checks.Drain, "runs at Gen2 while busy, Gen5 expected"},
		{"busy only now", link(func(r *Reading) { r.Gen, r.Percent, r.Before = 2, 100, &Moment{1, 49} }), limits, checks.Pass, checks.Watch, "a fault when"},
		{"fast the time before", link(func(r *Reading) { r.Gen, r.Percent, r.Before = 2, 100, &Moment{5, 100} }), limits, checks.Pass, checks.Watch, "a fault when"},
		{"as fast as the port", link(func(r *Reading) { r.Gen, r.Port.Gen, r.Percent, r.Before = 4, 4, 100, &Moment{4, 100} }), limits, checks.Pass, checks.None, "Gen4"},
		{"how busy it is was not read", link(func(r *Reading) { r.Gen, r.Percent, r.Busy, r.Before = 2, 100, checks.Unread, &Moment{2, 100} }), limits, checks.Unknown, checks.None, "load not read"},
		{"how busy it is is not told in MIG mode", link(func(r *Reading) { r.Gen, r.Percent, r.Busy, r.Before = 2, 100, checks.NotSupported, &Moment{2, 100} }), limits, checks.Pass, checks.None, "Gen2"},
		{"a speed that was not read", link(func(r *Reading) { r.Gen, r.Percent, r.Before = 0, 100, &Moment{0, 100} }), limits, checks.Pass, checks.None, "x16, at a speed that is not told"},
		{"as many replays as the link may have", link(func(r *Reading) { r.Replays = rose(31) }), limits, checks.Pass, checks.None, "31 replays in 1m0s"},
		{"one more", link(func(r *Reading) { r.Replays = rose(32) }), limits, checks.Fail, checks.Drain, "32 replays a minute, more than 31 on Gen5 x16"},
		{"one more in twice the time is half", link(func(r *Reading) { r.Replays, r.Over = rose(32), 2*time.Minute }), limits, checks.Pass, checks.None, "32 replays in 2m0s"},
		{"replays from before the first reading", link(func(r *Reading) { r.Replays, r.Over = counter.Of(99999), 0 }), limits, checks.Pass, checks.None, "Gen5 x16"},
		{"replays that were not read are not zero", link(func(r *Reading) { r.Replays = counter.Reading{} }), limits, checks.Unknown, checks.None, "replays not read"},
		{"nor are those that AER counts", link(func(r *Reading) {
			r.Correctable, r.NonFatal, r.Fatal = counter.Reading{}, counter.Reading{}, counter.Reading{}
		}), limits, checks.Unknown, checks.None, "corrected errors, non-fatal errors, fatal errors not read"},
		{"what was not read hides no fault", link(func(r *Reading) { r.Replays, r.Width = counter.Reading{}, 8 }), limits, checks.Fail, checks.Drain, "runs at x8"},
		{"nor what is to be watched", link(func(r *Reading) { r.Replays, r.NonFatal = counter.Reading{}, rose(1) }), limits, checks.Unknown, checks.Watch, "replays not read; 1 uncorrectable"},
		{"what is not counted is not judged", link(func(r *Reading) {
			no := counter.Reading{Have: checks.NotSupported}
			r.Replays, r.Correctable, r.NonFatal, r.Fatal = no, no, no, no
		}), limits, checks.Pass, checks.None, "Gen5 x16"},
		{"fatal errors, saturated", link(func(r *Reading) { r.Fatal = counter.Of(255) }), limits, checks.Pass, checks.Watch, "fatal errors: saturated at 255"},
		{"non-fatal errors, saturated", link(func(r *Reading) { r.NonFatal = counter.Of(1<<32 - 1) }), limits, checks.Pass, checks.Watch, "non-fatal errors: saturated at 4294967295"},
		{"ACS that was not read, where it must be off", link(nil), with(func(p *policy.PCIe) { p.RequireACSOff = true }), checks.Unknown, checks.None, "ACS not read"},
		{"saturated", link(func(r *Reading) { r.Replays = counter.Of(65535) }), limits, checks.Pass, checks.Watch, "replays: saturated at 65535"},
		{"as many corrected errors as it may have", link(func(r *Reading) { r.Correctable = rose(31) }), limits, checks.Pass, checks.None, ""},
		{"more corrected errors", link(func(r *Reading) { r.Correctable = rose(32) }), limits, checks.Fail, checks.Drain, "32 corrected errors a minute"},
		{"a non-fatal error", link(func(r *Reading) { r.NonFatal = rose(1) }), limits, checks.Pass, checks.Watch, "1 uncorrectable non-fatal errors in 1m0s"},
		{"a fatal error", link(func(r *Reading) { r.Fatal = rose(1) }), limits, checks.Fail, checks.Drain, "1 fatal errors in 1m0s"},
		{"a fatal error from before the first reading", link(func(r *Reading) { r.Fatal = counter.Of(1) }), limits, checks.Pass, checks.Watch, "1 fatal errors since boot, when is not known"},
		{"no error since, whatever was before", link(func(r *Reading) { r.Fatal, r.NonFatal = rose(0), rose(0) }), limits, checks.Pass, checks.None, ""},
		{"ACS that redirects is watched", link(func(r *Reading) { r.HaveACS, r.ACS = checks.Read, []string{"0000:3a:01.0"} }), limits, checks.Pass, checks.Watch, "ACS redirects peer-to-peer traffic at 0000:3a:01.0"},
		{"or a fault where policy says so", link(func(r *Reading) { r.HaveACS, r.ACS = checks.Read, []string{"0000:3a:01.0"} }), with(func(p *policy.PCIe) { p.RequireACSOff = true }), checks.Fail, checks.FixConfig, "ACS redirects"},
		{"ACS that does not", link(func(r *Reading) { r.HaveACS = checks.Read }), with(func(p *policy.PCIe) { p.RequireACSOff = true }), checks.Pass, checks.None, ""},
		{"a virtual machine", link(func(r *Reading) { r.HaveACS, r.ACS = checks.NotSupported, []string{"0000:3a:01.0"} }), with(func(p *policy.PCIe) { p.RequireACSOff = true }), checks.Pass, checks.None, ""},
		{"the severer of two", link(func(r *Reading) { r.Width, r.HaveACS, r.ACS = 8, checks.Read, []string{"0000:3a:01.0"} }), with(func(p *policy.PCIe) { p.RequireACSOff = true }), checks.Fail, checks.Drain, "x8, x16 expected; ACS"},
		{"never asked", Reading{}, limits, checks.Unknown, checks.None, "PCIe link not read"},
		{"gone from sysfs", Reading{Err: "sysfs shows no PCI device", Width: 8, Most: full}, limits, checks.Unknown, checks.None, "not read: sysfs shows no PCI device"},
		{"a machine that shows none", Reading{Have: checks.NotSupported}, limits, checks.NotApplicable, checks.None, "shows no PCIe link"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(gpu, tt.reading, tt.limits)
			if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.verdict, tt.action, tt.reason)
			}
			if f.Check != ID || f.Subject.Key() != "gpu/GPU-1" {
				t.Errorf("a finding of %s about %s", f.Check, f.Subject.Key())
			}
			if read := tt.reading.Have == checks.Read; read != (f.Evidence != "") {
				t.Errorf("evidence %q", f.Evidence)
			}
		})
	}
}

// DCGM's figures: per lane, rounded up over the lanes.
func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		gen, width int
		want       float64
	}{
		{1, 16, 3}, {2, 16, 5}, {3, 16, 8}, {4, 16, 16}, {5, 16, 31}, {6, 16, 62}, {1, 1, 1}, {5, 1, 2}, {5, 8, 16}, {3, 4, 2},
		{1, 20, 3}, {1, 7, 2}, {2, 10, 3}, {2, 17, 6}, {3, 25, 12}, {3, 21, 11}, {4, 25, 24}, {4, 22, 22}, {5, 25, 48}, {5, 12, 24}, {6, 25, 96}, {6, 6, 24},
		{0, 16, 62}, {7, 16, 62}, {5, 0, 31},
	} {
		if got := Limit(limits, tt.gen, tt.width); got != tt.want {
			t.Errorf("Gen%d x%d: %v, want %v", tt.gen, tt.width, got, tt.want)
		}
	}
}

func TestEvidence(t *testing.T) {
	r := Reading{
		Have: checks.Read, Width: 8, Gen: 4, Most: End{16, 5}, Port: End{8, 4}, Busy: checks.Read, Percent: 97, Over: time.Minute,
		Replays: rose(2), Correctable: counter.Of(4), Fatal: counter.Reading{Have: checks.NotSupported},
	}
	if got, want := Judge(gpu, r, limits).Evidence, "gen=4 width=8 max_gen=5 max_width=16 port_gen=4 port_width=8 busy=97% over=1m0s replays=1002(+2) correctable=4"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestThreeFixtures(t *testing.T) {
	one := func(r Reading) []checks.Finding { return []checks.Finding{Judge(gpu, r, limits)} }
	checktest.Three(t, ID, one(quiet(Reading{Have: checks.Read, Width: 16, Most: End{16, 5}, Busy: checks.Read})), one(Reading{Have: checks.Read, Width: 8, Most: End{16, 5}}), one(Reading{Err: "gone"}))
}
