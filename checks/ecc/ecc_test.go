package ecc

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

var gpu = checks.GPU{Node: "gpu001", UUID: "GPU-1", Index: 2, PCI: "0000:3b:00.0"}

func TestJudge(t *testing.T) {
	limits := policy.ECC{MaxVolatileUncorrected: 2, MaxVolatileCorrected: 1000, WatchCorrectedPerHour: 10, MaxCorrectedPerHour: 300, RequireEnabled: true}
	rose := func(from, to uint64, over time.Duration) Reading {
		return Reading{Have: checks.Read, Enabled: true, HaveSRAM: checks.Read, VolatileCorrected: to, CorrectedThen: &from, Over: over}
	}
	on := func(change func(*Reading)) Reading {
		r := Reading{Have: checks.Read, Enabled: true, HaveSRAM: checks.Read}
		if change != nil {
			change(&r)
		}
		return r
	}
	for _, tt := range []struct {
		name    string
		reading Reading
		limits  policy.ECC
		verdict checks.Verdict
		action  checks.Action
		reason  string
	}{
		{"no errors", on(nil), limits, checks.Pass, checks.None, "0 uncorrected and 0 corrected"},
		{"as many uncorrected as allowed", on(func(r *Reading) { r.VolatileUncorrected = 2 }), limits, checks.Pass, checks.None, "2 uncorrected"},
		{"one uncorrected more", on(func(r *Reading) { r.VolatileUncorrected = 3 }), limits, checks.Fail, checks.ResetGPU, "3 uncorrected errors since the driver was loaded, more than 2"},
		{"as many corrected as allowed", on(func(r *Reading) { r.VolatileCorrected = 1000 }), limits, checks.Pass, checks.None, "1000 corrected"},
		{"one corrected more", on(func(r *Reading) { r.VolatileCorrected = 1001 }), limits, checks.Fail, checks.Drain, "1001 corrected errors"},
		{"both, the severer action, both reasons", on(func(r *Reading) { r.VolatileUncorrected, r.VolatileCorrected = 3, 1001 }), limits, checks.Fail, checks.Drain, "more than 2; 1001 corrected"},
		{"lifetime counts are not judged", on(func(r *Reading) { r.AggregateUncorrected, r.AggregateCorrected = 900, 1<<40 }), limits, checks.Pass, checks.None, ""},
		{"beyond the driver's SRAM threshold", on(func(r *Reading) { r.SRAMThresholdExceeded = true }), limits, checks.Fail, checks.RMA, "SRAM errors beyond the driver's threshold"},
		{"the SRAM threshold outranks the rest", on(func(r *Reading) { r.SRAMThresholdExceeded, r.VolatileCorrected = true, 5000 }), limits, checks.Fail, checks.RMA, "SRAM"},
		{"SRAM not supported by this driver", on(func(r *Reading) { r.HaveSRAM = checks.NotSupported }), limits, checks.Pass, checks.None, ""},
		{"SRAM not read leaves it open", on(func(r *Reading) { r.HaveSRAM = checks.Unread }), limits, checks.Unknown, checks.None, "SRAM error threshold not read"},
		{"a fault stands though SRAM was not read", on(func(r *Reading) { r.HaveSRAM, r.VolatileUncorrected = checks.Unread, 3 }), limits, checks.Fail, checks.ResetGPU, "3 uncorrected"},
		{"a flag nobody read counts for nothing", on(func(r *Reading) { r.HaveSRAM, r.SRAMThresholdExceeded = checks.NotSupported, true }), limits, checks.Pass, checks.None, ""},
		{"off where policy wants it on", on(func(r *Reading) { r.Enabled = false }), limits, checks.Fail, checks.FixConfig, "ECC is off"},
		{"off until the reset", on(func(r *Reading) { r.Enabled, r.Pending = false, true }), limits, checks.Fail, checks.FixConfig, "comes on with the next GPU reset"},
		{"off where policy allows it", on(func(r *Reading) { r.Enabled = false }), policy.ECC{}, checks.NotApplicable, checks.None, "which policy allows"},
		{"on until the reset", on(func(r *Reading) { r.Pending = true }), limits, checks.Pass, checks.None, "goes off with the next GPU reset"},
		{"as many corrected within the hour as are not watched", rose(100, 110, time.Hour), limits, checks.Pass, checks.None, "110 corrected errors since the driver was loaded"},
		{"one more is watched", rose(100, 111, 40*time.Minute), limits, checks.Pass, checks.Watch, "11 corrected in the last 40m0s"},
		{"as many within the hour as are allowed", rose(100, 400, time.Hour), limits, checks.Pass, checks.Watch, "300 corrected in the last 1h0m0s"},
		{"one more within the hour", rose(100, 401, time.Minute), limits, checks.Fail, checks.Drain, "301 corrected errors in the last 1m0s, more than 300"},
		{"NVSentinel 1748: failing memory under load, below every total", rose(0, 1000, time.Minute), limits, checks.Fail, checks.Drain, "1000 corrected errors in the last 1m0s"},
		{"many from before the first reading", on(func(r *Reading) { r.VolatileCorrected = 900 }), limits, checks.Pass, checks.None, ""},
		{"a counter that was reset has no rate", rose(900, 5, time.Minute), limits, checks.Pass, checks.None, ""},
		{"a counter that counts no further", rose(255, 255, time.Minute), limits, checks.Pass, checks.Watch, "the corrected counter is saturated at 255"},
		{"the SRAM of sample 09 had three in its life", on(func(r *Reading) { r.SRAM = Location{Have: checks.Read, AggregateCorrected: 3} }), limits, checks.Pass, checks.None, ""},
		{"never asked: not zero errors", Reading{}, limits, checks.Unknown, checks.None, "ECC state not read"},
		{"N/A after a double bit error is not zero", Reading{Err: "Unknown Error", Enabled: true}, limits, checks.Unknown, checks.None, "not read: Unknown Error"},
		{"a GPU without ECC", Reading{Have: checks.NotSupported}, limits, checks.NotApplicable, checks.None, "no ECC"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(gpu, tt.reading, tt.limits)
			if f.Verdict != tt.verdict || f.Action != tt.action || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, %q; want %v, %v, %q", f.Verdict, f.Action, f.Reason, tt.verdict, tt.action, tt.reason)
			}
			if f.Hard {
				t.Error("an ECC fault is never hard by itself")
			}
			if f.Check != ID || f.Subject.Key() != "gpu/GPU-1" {
				t.Errorf("a finding of %s about %s", f.Check, f.Subject.Key())
			}
		})
	}
}

func TestEvidenceHoldsEveryCounter(t *testing.T) {
	r := Reading{Have: checks.Read, Enabled: true, VolatileCorrected: 1, VolatileUncorrected: 2, AggregateCorrected: 3, AggregateUncorrected: 4, HaveSRAM: checks.Read, SRAMThresholdExceeded: true}
	r.DRAM.Have, r.SRAM.Have = checks.NotSupported, checks.NotSupported
	const want = "enabled=true volatile_corrected=1 volatile_uncorrected=2 aggregate_corrected=3 aggregate_uncorrected=4 sram_threshold_exceeded=true"
	if got := Judge(gpu, r, policy.ECC{}).Evidence; got != want {
		t.Errorf("got %q", got)
	}
	r.HaveSRAM = checks.NotSupported
	if got := Judge(gpu, r, policy.ECC{}).Evidence; strings.Contains(got, "sram") {
		t.Errorf("a value nobody read is given as evidence: %q", got)
	}
	r.DRAM.Have = checks.Unread
	if got := Judge(gpu, r, policy.ECC{}).Evidence; !strings.HasSuffix(got, " dram=unread") {
		t.Errorf("what could not be read goes without saying: %q", got)
	}
}
