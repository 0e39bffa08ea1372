package catalog

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/sdc"
)

func sdcChecks() []Check {
	return []Check{
		{
			ID: sdc.ID, Title: "every SM computes what it should", Unit: "blocks verified",
			Doc: `Runs golden kernels on every SM and compares every word with what the CPU reference says. Each kernel is a chain in
which one wrong bit of one step never heals. An SM that no block reached, a planted error that was not reported, any CUDA
error and a timeout leave the verdict open. A wrong word counts when a kernel of grade prod found it, one with a stored record
of bit-equal runs on healthy GPUs of that compute capability, and is hard when it came back in three reruns; else it is
watched. No kernel comes with such a record so far: a site adds its own. The finding says where: one SM, the two of a TPC, or the
GPU when more are wrong; step, partition, lane and, where one stuck bit explains every word, unit and bit; operands, and a command
that runs the same again. All GPUs of a node wrong at once is a finding against the node: its CPU, its memory, the driver, or a
fault of ours. So is a CPU that computes something else than the embedded golden.`,
			Source:  "golden/kernels; the CUDA driver API; golden/ref",
			Applies: goldenGPUs + "only when asked for, by hand or by policy golden.screen and golden.prolog",
			Action:  "drain (hard when reproduced); watch for kernels that are not of grade prod",
			Cost:    "1 process a GPU; seconds",
			Thresholds: []Threshold{
				{"golden.screen", func(p policy.Policy) any { return p.Golden.Screen }},
				{"golden.prolog", func(p policy.Policy) any { return p.Golden.Prolog }},
				{"golden.no_library", func(p policy.Policy) any { return p.Golden.NoLibrary }},
				{"golden.records", func(p policy.Policy) any { return p.Golden.Records }},
				{"golden.trust_simulated", func(p policy.Policy) any { return p.Golden.TrustSimulated }},
			},
			Revision: 1,
			Neighbours: Neighbours{
				NHC:        "none",
				Gpud:       "none",
				NVSentinel: diagnosticBefore,
				DCGM:       "diagnostic: a product is compared with the same GPU's first one, to 1e-3 in FP32 and 1e-7 in FP64",
			},
		},
	}
}

// What the checks of a golden run have in common.
const (
	goldenGPUs       = "GPUs of compute capability 7.0 and later with a CUDA driver; "
	diagnosticBefore = "none of its own; DCGM's diagnostic before a job"
)

// JudgeSDC judges what golden runs said of GPUs, unless policy turns the check off.
func JudgeSDC(readings map[string]sdc.Reading, at time.Time, known checks.Inventory, p policy.Policy) []checks.Finding {
	var fs []checks.Finding
	for _, g := range known.Named() {
		f := sdc.Judge(g, readings[g.UUID], p.Golden)
		f.At = at
		fs = append(fs, f)
	}
	fs = sdc.Together(known.Node, fs)
	return aside(sdc.ID, fs, known, p)
}
