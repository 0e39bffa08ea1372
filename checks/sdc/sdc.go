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
	Have   checks.Availability `json:"have"`          // NotSupported: there is no CUDA driver library
	Err    string              `json:"err,omitempty"` // why Have is not Read
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

// Judge turns a reading into a finding. It does no I/O.
func Judge(gpu checks.GPU, r Reading, p policy.Golden) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
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
	switch {
	case r.Result.Blame == golden.BlameHost:
		f.Subject = checks.Subject{Kind: checks.KindNode, Node: gpu.Node}
		f.Verdict, f.Action = checks.Fail, checks.Drain
	case v.Outcome == golden.Verified:
		f.Verdict = checks.Pass
	case v.Outcome == golden.Wrong:
		if sm := v.SM; sm != golden.NoSM { // a wrong copy is the whole GPU's
			f.Subject.Kind, f.Subject.SM = checks.KindSM, &sm
		}
		f.Action = checks.Watch
		f.Evidence += fmt.Sprintf(" kernel=%s grade=%s", v.Kernel, v.Grade)
		if v.Grade == golden.Prod {
			f.Verdict, f.Action, f.Hard = checks.Fail, checks.Drain, v.Hard
		}
	}
	return f
}
