package sdc

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/golden"
)

var gpu = checks.GPU{Node: "gpu001", UUID: "GPU-1", Index: 2, PCI: "0000:3b:00.0"}

const digest = "0123456789abcdef0123456789abcdef"

func sound() Reading {
	return Reading{Have: checks.Read, Result: golden.Result{
		Suite: "prolog", Size: "full", GPU: golden.Device{UUID: "GPU-1", Capability: 90, SMs: 1, Driver: 12040},
		Stages: []golden.Stage{{Kernel: "k01_imad", Digest: digest, Seed: 1, Words: 8, Canary: golden.Canary{Tried: true, Seen: true}, SMs: []golden.SM{{Verified: 1, Warps: 4}}}},
	}}
}

func wrong(times int) Reading {
	r := sound()
	s := &r.Result.Stages[0]
	s.SMs[0] = golden.SM{Warps: 4, Mismatch: &golden.Mismatch{Words: 3, Reread: true, Inputs: true}}
	for i := range golden.Reruns {
		rerun := golden.Rerun{Seed: 1}
		if i < times {
			rerun.Wrong = []int{0}
		}
		s.Retests = append(s.Retests, rerun)
	}
	return r
}

func with(change func(*policy.Golden)) policy.Golden {
	p := policy.Golden{NoLibrary: "unknown", Records: []policy.GoldenRecord{{Kernel: digest, Capability: 90, GPUs: 3, Nodes: 2, Runs: 10_000, Cold: true, Hot: true, By: "site"}}}
	if change != nil {
		change(&p)
	}
	return p
}

func TestJudge(t *testing.T) {
	prod := with(nil)
	simulated := wrong(3)
	simulated.Result.GPU.Simulated = true
	host := sound()
	host.Result.Blame, host.Result.Stages[0].Err = golden.BlameHost, "this CPU computes 12 where the embedded golden is 34"
	half := sound()
	half.Result.Err = "cuCtxSynchronize: CUDA_ERROR_LAUNCH_FAILED (719)"
	copied := sound()
	copied.Result.Stages[0] = golden.Stage{Kernel: "k21_h2d", Digest: digest, Seed: 1, Canary: golden.Canary{Tried: true, Seen: true}, Copy: &golden.Copy{Copies: 7, Verified: 7}}
	miscopied := wrong(3)
	for i := range miscopied.Result.Stages[0].Retests {
		miscopied.Result.Stages[0].Retests[i].Wrong = []int{golden.NoSM}
	}
	miscopied.Result.Stages[0].SMs = nil
	miscopied.Result.Stages[0].Copy = &golden.Copy{Copies: 7, Verified: 6, Wrong: &golden.CopyMismatch{Direction: golden.HostToDevice, Words: 3, Bytes: 4096, First: 8, Bits: 0x400, Reread: true, Inputs: true}}
	for _, tt := range []struct {
		name    string
		reading Reading
		policy  policy.Golden
		verdict checks.Verdict
		action  checks.Action
		hard    bool
		subject string
		reason  string
	}{
		{"every block verified", sound(), prod, checks.Pass, checks.None, false, "gpu/GPU-1", "1 of 1 blocks verified"},
		{"verified by kernels of any grade", sound(), with(func(p *policy.Golden) { p.Records = nil }), checks.Pass, checks.None, false, "gpu/GPU-1", "1 of 1"},
		{"wrong, three times again", wrong(3), prod, checks.Fail, checks.Drain, true, "sm/GPU-1/sm0", "SM 0"},
		{"wrong, twice again: no hard fault", wrong(2), prod, checks.Fail, checks.Drain, false, "sm/GPU-1/sm0", "2 of 3 reruns"},
		{"wrong by a kernel without a record: watched", wrong(3), with(func(p *policy.Golden) { p.Records = nil }), checks.Unknown, checks.Watch, false, "sm/GPU-1/sm0", "SM 0"},
		{"wrong by a kernel with a thin record: watched", wrong(3), with(func(p *policy.Golden) { p.Records[0].Runs = 9_999 }), checks.Unknown, checks.Watch, false, "sm/GPU-1/sm0", "SM 0"},
		{"a record for silicon says nothing of the simulated GPU", simulated, prod, checks.Unknown, checks.Watch, false, "sm/GPU-1/sm0", "SM 0"},
		{"unless policy trusts the simulated one", simulated, with(func(p *policy.Golden) { p.TrustSimulated = true; p.Records = nil }), checks.Fail, checks.Drain, true, "sm/GPU-1/sm0", "SM 0"},
		{"which says nothing of silicon", wrong(3), with(func(p *policy.Golden) { p.TrustSimulated = true; p.Records = nil }), checks.Unknown, checks.Watch, false, "sm/GPU-1/sm0", "SM 0"},
		{"every copy verified", copied, prod, checks.Pass, checks.None, false, "gpu/GPU-1", "7 of 7 copies verified"},
		{"a wrong copy is no SM's", miscopied, prod, checks.Fail, checks.Drain, true, "gpu/GPU-1", "gave wrong data (host to device): 3 words of 4096 bytes, the first at byte 8, bits 00000400; again in 3 of 3 reruns"},
		{"the CPU is wrong, not the GPU", host, prod, checks.Fail, checks.Drain, false, "node", "this CPU"},
		{"a run that ended early", half, prod, checks.Unknown, checks.None, false, "gpu/GPU-1", "LAUNCH_FAILED"},
		{"never run", Reading{}, prod, checks.Unknown, checks.None, false, "gpu/GPU-1", "no golden kernel ran"},
		{"what nobody ran proves nothing", Reading{Result: sound().Result}, prod, checks.Unknown, checks.None, false, "gpu/GPU-1", "no golden kernel ran"},
		{"no library", Reading{Have: checks.NotSupported, Err: "load libcuda.so.1"}, prod, checks.Unknown, checks.None, false, "gpu/GPU-1", "load libcuda"},
		{"no library where policy says that is well", Reading{Have: checks.NotSupported, Err: "load libcuda.so.1"}, with(func(p *policy.Golden) { p.NoLibrary = "not_applicable" }), checks.NotApplicable, checks.None, false, "gpu/GPU-1", "load libcuda"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(gpu, tt.reading, tt.policy)
			if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard != tt.hard || f.Subject.Key() != tt.subject || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %s, %q; want %v, %v, hard %t, %s, %q", f.Verdict, f.Action, f.Hard, f.Subject.Key(), f.Reason, tt.verdict, tt.action, tt.hard, tt.subject, tt.reason)
			}
			if f.Check != ID || f.Verdict == checks.Fail && f.Action.Harmless() {
				t.Errorf("%+v", f)
			}
			if read := tt.reading.Have == checks.Read; read != (f.Evidence != "") {
				t.Errorf("evidence %q", f.Evidence)
			}
		})
	}
	one := func(r Reading) []checks.Finding { return []checks.Finding{Judge(gpu, r, prod)} }
	checktest.Three(t, ID, one(sound()), one(wrong(3)), one(Reading{}))
}
