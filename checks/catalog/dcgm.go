package catalog

import (
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/dcgm"
	"github.com/assay-gpu/assay/checks/policy"
)

func dcgmChecks() []Check {
	return []Check{
		{
			ID: dcgm.ID, Title: "what DCGM's diagnostic finds", Unit: "tests",
			Doc: `Reads the output of dcgmi diag, in every form from 2.x to 4.6. What an error asks for is its own severity, in the
numbering of its generation, or that of the table of error codes: isolate is a fault that drains, reset one that a reset
clears, config one for a person; monitor is watched. A test that was skipped proves nothing, nor does one that passed and
complains; where no test of hardware ran the GPU was not tested. Errors of the tool itself, a run that could not start and
an output that is cut short leave the verdict open. A GPU that is lost, a remap that failed and what the driver itself asks
for are hard, as elsewhere.`,
			Source:  "dcgmi diag -j; NVIDIA/DCGM dcgmi/Diag.cpp and dcgm_errors.h, v2.1.4 to v4.6.0",
			Applies: "nodes with DCGM; only when asked for, by hand or by policy dcgm.screen",
			Action:  "drain; reset_gpu; fix_config; reboot, reset_gpu or rma (hard) for what the driver says through it",
			Cost:    "seconds at level 1, hours at level 4; the GPUs must be idle",
			Thresholds: []Threshold{
				{"dcgm.actions", func(p policy.Policy) any { return p.DCGM.Actions }},
				{"dcgm.screen", func(p policy.Policy) any { return p.DCGM.Screen }},
			},
			Revision: 1,
			Neighbours: Neighbours{
				NHC:        "none of its own; sites call dcgmi from a script and go by its exit status",
				Gpud:       "none",
				NVSentinel: "before a job: 30 s to 15 min of the diagnostic in an init container",
				DCGM:       "none; the diagnostic is apart from the health watches",
			},
		},
		{
			ID: dcgm.HealthID, Title: "what DCGM's health watches see", Unit: "incidents",
			Doc: `Sets every health watch of DCGM on all GPUs and asks for incidents, in a process that can be killed: through a host
engine that runs, or one of our own. What an incident asks for goes by its error code, as in check dcgm; a silence counts
once the watches have been set for as long as they need. A code that is newer than our table is a fault where DCGM calls it
one. Without DCGM the check does not apply, or is open where policy requires DCGM. That DCGM resets GPUs by a policy of its
own is watched.`,
			Source:  "libdcgm.so.4: dcgmHealthSet_v2, dcgmHealthCheck, dcgmPolicyGet; dcgm_structs.h",
			Applies: "nodes with DCGM, where policy dcgm.health asks for it",
			Action:  "drain; reset_gpu; fix_config; reboot or reset_gpu (hard) for what the driver says through it",
			Cost:    "1 child every dcgm.every; the host engine reads the driver",
			Thresholds: []Threshold{
				{"dcgm.settle", func(p policy.Policy) any { return p.DCGM.Settle }},
				{"dcgm.required", func(p policy.Policy) any { return p.DCGM.Required }},
				{"dcgm.health", func(p policy.Policy) any { return p.DCGM.Health }},
				{"dcgm.actions", func(p policy.Policy) any { return p.DCGM.Actions }},
			},
			Revision: 1,
			Neighbours: Neighbours{
				NHC:        "none",
				Gpud:       "none; it asks NVML itself",
				NVSentinel: "all watches every 15 s, each with an action of its own; some of those errors only the diagnostic raises",
				DCGM:       "itself: pass, warn or fail by watch and code",
			},
		},
	}
}

// JudgeDCGM judges what the diagnostic said, unless policy turns the check off. Findings bear the inventory's node and boot;
// their time is the caller's to set.
func JudgeDCGM(r dcgm.Report, known checks.Inventory, p policy.Policy) []checks.Finding {
	return aside(dcgm.ID, dcgm.Judge(known.Node, known.GPUs, r, p.DCGM), known, p)
}

// JudgeDCGMHealth judges what the health watches said, unless policy turns the check off.
func JudgeDCGMHealth(h dcgm.Health, known checks.Inventory, p policy.Policy) []checks.Finding {
	return aside(dcgm.HealthID, dcgm.JudgeHealth(known.Node, known.GPUs, h, p.DCGM), known, p)
}

// aside finishes the findings of a check that reads no snapshot.
func aside(id string, fs []checks.Finding, known checks.Inventory, p policy.Policy) []checks.Finding {
	if !runs(p, id) {
		return nil
	}
	for i := range fs {
		fs[i].Subject.Node, fs[i].BootID = known.Node, known.BootID
	}
	return settle(fs, p)
}
