package checks

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

func TestFindingJSONNames(t *testing.T) {
	three, eleven, forty := 3, 11, 40
	f := Finding{
		Check: "xid", Code: 79, Verdict: Fail, Action: Reboot, Hard: true, Reason: "off the bus", Count: 2, Incident: "I-1", Secondary: true,
		At: time.Date(2026, 3, 1, 4, 5, 6, 0, time.UTC), BootID: "b", Evidence: "NVRM: …", Cause: 48,
		Subject: Subject{Kind: KindGPU, Node: "gpu001", GPUUUID: "GPU-1", GPUIndex: &three, PCI: "0000:3b:00.0", MIG: "1/0", Link: &eleven, Port: "p", SM: &forty},
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"check":"xid","code":79,"subject":{"kind":"gpu","node":"gpu001","gpu_uuid":"GPU-1","gpu_index":3,"pci":"0000:3b:00.0","mig":"1/0","link":11,"port":"p","sm":40},` +
		`"verdict":"fail","action":"reboot","hard":true,"reason":"off the bus","count":2,"incident":"I-1","secondary":true,"at":"2026-03-01T04:05:06Z","boot_id":"b","evidence":"NVRM: …"}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	zero, err := json.Marshal(Finding{})
	if err != nil {
		t.Fatal(err)
	}
	const wantZero = `{"check":"","subject":{"kind":""},"verdict":"unknown","action":"none","hard":false,"reason":"","at":"0001-01-01T00:00:00Z"}`
	if string(zero) != wantZero {
		t.Errorf("got  %s\nwant %s", zero, wantZero)
	}
}

func TestHardAndSoftFaults(t *testing.T) {
	for _, tt := range []struct {
		name       string
		f          Finding
		hard, soft bool
	}{
		{"a hard fail", Finding{Verdict: Fail, Hard: true}, true, false},
		{"a soft fail", Finding{Verdict: Fail}, false, true},
		{"a hard fail that follows from another", Finding{Verdict: Fail, Hard: true, Secondary: true}, false, false},
		{"a soft fail that follows from another", Finding{Verdict: Fail, Secondary: true}, false, false},
		{"a pass is no fault, whatever it says", Finding{Verdict: Pass, Hard: true}, false, false},
		{"no evidence is no fault", Finding{Hard: true}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.f.HardFault() != tt.hard || tt.f.SoftFault() != tt.soft {
				t.Errorf("hard %t, soft %t; want %t, %t", tt.f.HardFault(), tt.f.SoftFault(), tt.hard, tt.soft)
			}
		})
	}
}

func TestFoldFindingsLeavesConsequencesOut(t *testing.T) {
	fs := []Finding{{Verdict: Pass}, {Verdict: Fail, Secondary: true}}
	if got := FoldFindings(fs); got != Pass {
		t.Errorf("got %v, want pass", got)
	}
	if got := FoldFindings(append(fs, Finding{Verdict: Fail})); got != Fail {
		t.Errorf("got %v, want fail", got)
	}
	if got := FoldFindings(nil); got != Unknown {
		t.Errorf("nothing folds to %v", got)
	}
}

func TestWorst(t *testing.T) {
	soft := Finding{Check: "soft", Verdict: Fail, Action: RMA}
	hard := Finding{Check: "hard", Verdict: Fail, Action: ResetGPU, Hard: true}
	harder := Finding{Check: "harder", Verdict: Fail, Action: Reboot, Hard: true}
	for _, tt := range []struct {
		name string
		in   []Finding
		want string
	}{
		{"none fails", []Finding{{Verdict: Pass, Action: ResetGPU}, {}}, ""},
		{"a hard one before a soft one of severer action", []Finding{soft, hard}, "hard"},
		{"the severer of two hard ones", []Finding{hard, harder, soft}, "harder"},
		{"the severer of two hard ones, the other way round", []Finding{harder, hard}, "harder"},
		{"consequences do not decide", []Finding{{Check: "x", Verdict: Fail, Hard: true, Secondary: true}, soft}, "soft"},
		{"the first of two alike", []Finding{{Check: "a", Verdict: Fail, Action: Drain}, {Check: "b", Verdict: Fail, Action: Drain}}, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Worst(tt.in)
			if ok != (tt.want != "") || got.Check != tt.want {
				t.Errorf("got %q, %t, want %q", got.Check, ok, tt.want)
			}
		})
	}
}

func TestSubjectKey(t *testing.T) {
	one := 1
	keys := []string{
		Subject{Kind: KindNode}.Key(),
		Subject{Kind: KindGPU, GPUUUID: "GPU-1", PCI: "0000:01:00.0", GPUIndex: &one}.Key(),
		Subject{Kind: KindGPU, PCI: "0000:01:00.0"}.Key(),
		Subject{Kind: KindMIG, GPUUUID: "GPU-1", MIG: "1/0"}.Key(),
		Subject{Kind: KindLink, GPUUUID: "GPU-1", Link: &one}.Key(),
		Subject{Kind: KindPort, Port: "mlx5_0/1"}.Key(),
		Subject{Kind: KindSM, GPUUUID: "GPU-1", SM: &one}.Key(),
	}
	want := []string{"node", "gpu/GPU-1", "gpu/0000:01:00.0", "mig/GPU-1/mig1/0", "link/GPU-1/link1", "port/portmlx5_0/1", "sm/GPU-1/sm1"}
	if !slices.Equal(keys, want) {
		t.Errorf("got  %q\nwant %q", keys, want)
	}
}

func TestRoutine(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    Report
		want bool
	}{
		{"a background pass", Report{Why: WhyBackground, Verdict: Pass}, true},
		{"a background unknown", Report{Why: WhyBackground}, true},
		{"a fault", Report{Why: WhyBackground, Verdict: Fail}, false},
		{"a prolog's", Report{Why: WhyProlog, Verdict: Pass}, false},
		{"an answer to a screen", Report{Why: WhyBackground, Verdict: Pass, Screen: "e1"}, false},
	} {
		if got := tt.r.Routine(); got != tt.want {
			t.Errorf("%s: got %t", tt.name, got)
		}
	}
}

func TestGPUSubject(t *testing.T) {
	g := GPU{Node: "n", UUID: "GPU-1", Index: 0, PCI: "0000:01:00.0"}
	s := g.Subject()
	if s.Kind != KindGPU || s.Node != "n" || s.GPUUUID != "GPU-1" || s.PCI != "0000:01:00.0" || s.GPUIndex == nil || *s.GPUIndex != 0 {
		t.Errorf("got %+v", s)
	}
}
