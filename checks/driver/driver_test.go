package driver

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
)

const hungChildren = 3

func TestJudgeCall(t *testing.T) {
	gpu := checks.GPU{Node: "gpu001", UUID: "GPU-1", Index: 2, PCI: "0000:3b:00.0"}
	const call = "nvmlDeviceGetRemappedRows"
	for _, tt := range []struct {
		name    string
		call    Call
		verdict checks.Verdict
		action  checks.Action
		hard    bool
		reason  string
	}{
		{"the driver answers", Call{}, checks.Pass, checks.None, false, "the driver answers"},
		{"lost", Call{Lost: true}, checks.Fail, checks.Reboot, true, "lost: the driver"},
		{"lost outranks any other failure", Call{Lost: true, Err: "x", Hung: call, HungCount: 1}, checks.Fail, checks.Reboot, true, "lost"},
		{"hung once", Call{Hung: call, HungCount: 1}, checks.Unknown, checks.Watch, false, "nvmlDeviceGetRemappedRows hung in 1 of 3 processes"},
		{"hung once less than it takes", Call{Hung: call, HungCount: 2}, checks.Unknown, checks.Watch, false, "2 of 3"},
		{"hung as often as it takes", Call{Hung: call, HungCount: 3}, checks.Fail, checks.Reboot, true, "nvmlDeviceGetRemappedRows hung in 3 fresh processes"},
		{"hung more often", Call{Hung: call, HungCount: 4}, checks.Fail, checks.Reboot, true, "4 fresh"},
		{"blocked since a call hung", Call{Blocked: true, Hung: call, HungCount: 1}, checks.Fail, checks.Reboot, true, "not asked any more until the next boot: nvmlDeviceGetRemappedRows hung"},
		{"blocked, the call forgotten", Call{Blocked: true}, checks.Fail, checks.Reboot, true, "an earlier call hung"},
		{"blocked, with what was said", Call{Blocked: true, Err: "kept from an earlier run"}, checks.Fail, checks.Reboot, true, "kept from an earlier run"},
		{"any other error proves nothing", Call{Err: "ERROR_UNKNOWN"}, checks.Unknown, checks.None, false, "not read: ERROR_UNKNOWN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := JudgeCall(gpu, tt.call, hungChildren)
			if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard != tt.hard || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, hard %t, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.verdict, tt.action, tt.hard, tt.reason)
			}
			if f.Check != ID || f.Subject.Key() != "gpu/GPU-1" {
				t.Errorf("a finding of %s about %s", f.Check, f.Subject.Key())
			}
		})
	}
}

func TestJudgeInit(t *testing.T) {
	for _, tt := range []struct {
		name    string
		init    Init
		verdict checks.Verdict
		action  checks.Action
		hard    bool
		reason  string
	}{
		{"NVML starts", Init{OK: true}, checks.Pass, checks.None, false, "NVML starts"},
		{"never tried", Init{}, checks.Unknown, checks.None, false, "NVML was not started"},
		{"no library", Init{Err: "libnvidia-ml.so.1: not found"}, checks.Unknown, checks.None, false, "libnvidia-ml.so.1: not found"},
		{"hung once", Init{HungCount: 1}, checks.Unknown, checks.Watch, false, "nvmlInit hung in 1 of 3"},
		{"hung once less than it takes", Init{HungCount: 2}, checks.Unknown, checks.Watch, false, "2 of 3"},
		{"hung as often as it takes", Init{HungCount: 3}, checks.Fail, checks.Reboot, true, "nvmlInit hung in 3 fresh processes"},
		{"a child that outlives SIGKILL", Init{OK: true, ChildStuck: "nvmlDeviceGetUUID"}, checks.Fail, checks.Reboot, true, "called nvmlDeviceGetUUID is still there after SIGKILL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := JudgeInit("gpu001", tt.init, hungChildren)
			if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard != tt.hard || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, hard %t, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.verdict, tt.action, tt.hard, tt.reason)
			}
			if f.Check != ID || f.Subject.Key() != "node" || f.Subject.Node != "gpu001" {
				t.Errorf("a finding of %s about %+v", f.Check, f.Subject)
			}
		})
	}
}
