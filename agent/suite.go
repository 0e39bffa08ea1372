package agent

import (
	"fmt"
	"slices"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/inventory"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/xid"
)

// ofKernel reports whether the finding is from the kernel log.
func ofKernel(f checks.Finding) bool { return catalog.OfLog(f.Check) }

// A SuiteResult is what one run of a suite found.
type SuiteResult struct {
	Level     checks.Level
	Snapshot  catalog.Snapshot
	Findings  []checks.Finding
	Verdict   checks.Verdict
	Tested    []string // check ids that gave an answer
	NotTested []string // check ids of the suite that gave none
	Err       string   // why the snapshot could not be taken; its findings are then Unknown

	report *checks.Report // as it was told
}

// A SuiteInput is what Judge judges.
type SuiteInput struct {
	Level    checks.Level
	Snapshot catalog.Snapshot
	Err      string            // the snapshot could not be taken
	Kernel   []checks.Finding  // kernel-log findings that count for this suite
	Aside    []checks.Finding  // what was found beside the snapshot
	KernelOK string            // empty: the kernel log was read to its end; else why that is not sure
	Expected *checks.Inventory // hardware to compare with
	Policy   policy.Policy
}

// Judge judges a suite's readings. It does no I/O.
func Judge(in SuiteInput) SuiteResult {
	r := SuiteResult{Level: in.Level, Snapshot: in.Snapshot, Err: in.Err}
	node := checks.Subject{Kind: checks.KindNode, Node: in.Snapshot.Node}
	doubt := func(check, why string) checks.Finding {
		return checks.Finding{Check: check, Subject: node, Verdict: checks.Unknown, Reason: why, At: in.Snapshot.At, BootID: in.Snapshot.BootID}
	}
	if in.Err != "" {
		r.Findings = []checks.Finding{doubt(driver.ID, in.Err)}
	} else {
		r.Findings = catalog.Judge(in.Snapshot, in.Expected, in.Policy)
	}
	r.Findings = append(r.Findings, in.Aside...)
	// A quiet kernel log proves nothing, so it earns no Pass; one that was not read leaves the suite open.
	if in.KernelOK != "" && in.Policy.ModeOf(xid.ID) != policy.Off {
		r.Findings = append(r.Findings, doubt(xid.ID, in.KernelOK))
	}
	if len(in.Kernel)+len(in.Aside) > 0 {
		// Within the suite alone: a fault never counts less here because its cause was told elsewhere.
		r.Findings = checks.GroupIncidents(append(r.Findings, in.Kernel...), in.Policy.Agent.IncidentGap.D(), in.Policy.Agent.IncidentCause.D())
	}
	r.Verdict = checks.FoldFindings(r.Findings)
	r.Tested, r.NotTested = catalog.Coverage(in.Level, r.Findings)
	return r
}

// ownGPU reports whether one of the GPUs with these UUIDs is missing from the snapshot or lost and a finding says so, and
// whether policy lets that finding act. One that acts comes before one that is observed. A snapshot that could not be
// taken says nothing, and a check that is off finds nothing.
func (r SuiteResult) ownGPU(p policy.Policy, uuids []string) (why string, acts, gone bool) {
	if r.Err != "" || !r.Snapshot.Init.OK {
		return "", false, false
	}
	for _, u := range uuids {
		text, ok := r.goneGPU(u)
		if !ok {
			continue
		}
		for _, f := range r.Findings {
			if !tellsGone(f, u) {
				continue
			}
			if act := catalog.Acts(p, r.root(f).Check); act || !gone {
				why, acts, gone = text, act, true
			}
			if acts {
				return why, acts, gone
			}
		}
	}
	return why, acts, gone
}

// goneGPU reports whether the GPU is missing from the snapshot or lost, and how, in words.
func (r SuiteResult) goneGPU(uuid string) (string, bool) {
	i := slices.IndexFunc(r.Snapshot.GPUs, func(g catalog.GPUState) bool { return g.UUID == uuid })
	if i < 0 {
		return fmt.Sprintf("GPU %s is missing", uuid), true
	}
	if g := r.Snapshot.GPUs[i]; g.Call.Lost {
		return fmt.Sprintf("GPU %d (%s) is lost", g.Index, uuid), true
	}
	return "", false
}

// tellsGone reports whether f is about the GPU itself being away: by its UUID or, where only the driver's count shows it,
// by the node. A hard fault on it tells as much.
func tellsGone(f checks.Finding, uuid string) bool {
	switch {
	case f.Verdict != checks.Fail && f.Verdict != checks.Unknown:
		return false
	case f.Check == driver.ID:
		return f.Subject.GPUUUID == uuid
	case f.Check == inventory.ID:
		return f.Subject.GPUUUID == uuid || f.Subject.Kind == checks.KindNode && f.HardFault()
	}
	return f.HardFault() && f.Subject.GPUUUID == uuid
}

// root is the finding that f is a consequence of, by which the control plane goes; f itself when it is of none.
func (r SuiteResult) root(f checks.Finding) checks.Finding {
	if f.Secondary && f.Incident != "" {
		for _, x := range r.Findings {
			if x.Incident == f.Incident && !x.Secondary {
				return x
			}
		}
	}
	return f
}
