// Package sdc judges whether a GPU computes what it should, by what a run of golden kernels has shown.
//
// A wrong word is a fault only when a kernel of grade prod found it: one with a stored record of bit-equal runs on healthy
// GPUs of the same compute capability. It is hard when it came back, on the same SM with the same seed, in three reruns. What
// any other kernel finds is watched: as likely as not the kernel is wrong, and a wrong verdict costs a fleet. A CPU that
// computes something else than the embedded golden is a finding against the node and never against a GPU.
// Source: the rules of package golden.
package sdc

import (
	"fmt"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/golden"
)

// ID is the check's catalog id.
const ID = "sdc"

// A Reading is what a run said of one GPU, or why there was none.
type Reading struct {
	Have   checks.Availability `json:"have"`            // NotSupported: there is no CUDA driver library
	Err    string              `json:"err,omitempty"`   // why Have is not Read
	Stuck  bool                `json:"stuck,omitempty"` // its child lives on after SIGKILL: the driver holds it
	Result golden.Result       `json:"result"`
}

// Grades are those that a policy's records give.
func Grades(p policy.Golden, simulated bool) golden.Grades {
	g := golden.Grades{Simulated: simulated}
	for _, r := range p.Records {
		g.Records = append(g.Records, golden.Record{Digest: r.Kernel, Capability: r.Capability, GPUs: r.GPUs, Nodes: r.Nodes, Runs: r.Runs, Cold: r.Cold, Hot: r.Hot, By: r.By})
	}
	if p.TrustSimulated {
		for _, capability := range []int{70, 75, 80, 90, 100} {
			g.Records = append(g.Records, golden.Record{Digest: "*", Capability: capability, Simulated: true, By: "policy golden.trust_simulated"})
		}
	}
	return g
}

// Together looks at the findings of all GPUs of a node that ran. When each of two or more computed wrong numbers it is nothing
// of theirs: the CPU, the host's memory, the driver or a fault of ours, and the node is to be drained rather than its GPUs
// blamed. Findings that nothing may act on are left as they are.
func Together(node string, fs []checks.Finding) []checks.Finding {
	wrong, ran := 0, 0
	for _, f := range fs {
		if f.Verdict == checks.Pass || f.Subject.GPUUUID != "" && f.Action == checks.Drain {
			ran++
		}
		if f.Subject.GPUUUID != "" && f.Verdict == checks.Fail && f.Action == checks.Drain {
			wrong++
		}
	}
	if wrong < 2 || wrong != ran {
		return fs
	}
	all := checks.Finding{
		Check: ID, Subject: checks.Subject{Kind: checks.KindNode, Node: node}, Verdict: checks.Fail, Action: checks.Drain, At: fs[0].At,
		Reason: fmt.Sprintf("all %d GPUs that ran gave wrong results: the CPU, the host's memory, the driver, or a fault of ours", wrong),
	}
	out := []checks.Finding{all}
	for _, f := range fs {
		if f.Subject.GPUUUID != "" && f.Verdict == checks.Fail && f.Action == checks.Drain {
			f.Verdict, f.Action, f.Hard = checks.Unknown, checks.Watch, false
		}
		out = append(out, f)
	}
	return out
}

// Judge turns a reading into a finding. It does no I/O.
func Judge(gpu checks.GPU, r Reading, p policy.Golden) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
	if r.Stuck {
		f.Verdict, f.Action, f.Hard = checks.Fail, checks.Reboot, true
		f.Reason = r.Err
		return f
	}
	switch r.Have {
	case checks.Read:
	case checks.NotSupported:
		f.Reason = "no golden kernel ran: " + r.Err
		if p.NoLibrary == "not_applicable" {
			f.Verdict = checks.NotApplicable
		}
		return f
	default:
		f.Reason = "no golden kernel ran"
		if r.Err != "" {
			f.Reason += ": " + r.Err
		}
		return f
	}
	v := golden.Judge(r.Result, Grades(p, r.Result.GPU.Simulated))
	f.Reason = v.Reason
	f.Evidence = fmt.Sprintf("suite=%s size=%s blocks=%d/%d copies=%d/%d driver=%d simulated=%t", r.Result.Suite, r.Result.Size, v.Verified, v.Blocks, v.Copied, v.Copies, r.Result.GPU.Driver, r.Result.GPU.Simulated)
	if r.Result.Corpus != "" {
		f.Evidence += fmt.Sprintf(" corpus=%s left=%d", r.Result.Corpus, r.Result.Left)
	}
	if r.Result.CorpusErr != "" {
		f.Reason += "; no corpus ran: " + r.Result.CorpusErr
	}
	switch {
	case r.Result.Blame == golden.BlameHost:
		f.Subject = checks.Subject{Kind: checks.KindNode, Node: gpu.Node}
		f.Verdict, f.Action = checks.Fail, checks.Drain
	case v.Outcome == golden.Verified:
		f.Verdict = checks.Pass
	case v.Outcome == golden.Wrong:
		if sm := v.SM; sm != golden.NoSM && v.Scope() != golden.ScopeGPU { // a wrong copy is the whole GPU's
			f.Subject.Kind, f.Subject.SM = checks.KindSM, &sm
		}
		f.Action = checks.Watch
		f.Evidence += fmt.Sprintf(" grade=%s scope=%s %s", v.Grade, v.Scope(), v.Evidence)
		if v.Grade == golden.Prod {
			f.Verdict, f.Action, f.Hard = checks.Fail, checks.Drain, v.Hard
		}
	}
	return f
}

// Suite names what golden kernels run in a suite of that level, and how much of it: their code, goldens and sizes. Empty when
// none do.
func Suite(level checks.Level, p policy.Golden) string {
	if level == checks.NoLevel || !p.Runs() {
		return ""
	}
	s, err := golden.LookupSuite(SuiteOf(level))
	if err != nil {
		return "" // there is one for every level; a test holds them together
	}
	size, err := golden.SizeOf(p.Size)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s screen=%t prolog=%t", golden.SuiteDigest(s, size), p.Screen, p.Prolog)
}

// SuiteOf is the golden suite that a screen of a level runs.
func SuiteOf(level checks.Level) string {
	switch level {
	case checks.Soak:
		return "soak"
	case checks.Intake:
		return "intake"
	}
	return "prolog"
}
