package modes

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// ID is the check's catalog id.
const ID = "modes"

// Judge turns one GPU's settings into a finding. It does no I/O. A GPU on which nothing may compute is a fault on any node;
// the rest is as policy wants it. Persistence mode off makes each job pay for loading the GPU's state, and loses its
// counters; neighbours call it an error (Azure's healthagent) or a warning that was mistaken for one (NVSentinel #772).
func Judge(gpu checks.GPU, r Reading, p policy.Modes) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
	var faults, watch, unread []string
	known := false
	for _, s := range []struct {
		what string
		have checks.Availability
	}{{"persistence mode", r.HavePersistence}, {"compute mode", r.HaveCompute}, {"MIG mode", r.HaveMIG}} {
		known = known || s.have == checks.Read
		if s.have == checks.Unread {
			unread = append(unread, s.what)
		}
	}
	if known {
		f.Evidence = evidence(r)
	}
	if r.HaveCompute == checks.Read {
		switch {
		case r.Compute == Prohibited:
			faults = append(faults, "compute mode prohibits every job")
		case p.Compute != "" && r.Compute.String() != p.Compute:
			faults = append(faults, fmt.Sprintf("compute mode %s, policy wants %s", r.Compute, p.Compute))
		}
	}
	if r.HavePersistence == checks.Read && !r.Persistence {
		if p.RequirePersistence {
			faults = append(faults, "persistence mode is off")
		} else {
			watch = append(watch, "persistence mode is off")
		}
	}
	if r.HaveMIG == checks.Read {
		if p.MIG != "" && onOff(r.MIG) != p.MIG {
			faults = append(faults, fmt.Sprintf("MIG mode %s, policy wants %s", onOff(r.MIG), p.MIG))
		}
		if r.MIG != r.MIGPending {
			watch = append(watch, fmt.Sprintf("MIG mode goes %s with the next GPU reset", onOff(r.MIGPending)))
		}
	}
	switch {
	case len(faults) > 0:
		f.Verdict, f.Action, f.Reason = checks.Fail, checks.FixConfig, strings.Join(faults, "; ")
	case len(unread) > 0:
		f.Reason = strings.Join(unread, ", ") + " not read"
		if r.Err != "" {
			f.Reason += ": " + r.Err
		}
	case !known:
		f.Verdict, f.Reason = checks.NotApplicable, "this GPU has no modes"
	case len(watch) > 0:
		f.Verdict, f.Action, f.Reason = checks.Pass, checks.Watch, strings.Join(watch, "; ")
	default:
		f.Verdict, f.Reason = checks.Pass, f.Evidence
	}
	return f
}

// JudgeSoftware compares the kernel driver with the library that jobs load: after an update without a reboot they differ, and
// no new job can use a GPU, while those that run go on.
func JudgeSoftware(node string, s Software) checks.Finding {
	f := checks.Finding{Check: ID, Subject: checks.Subject{Kind: checks.KindNode, Node: node}}
	_, library, _ := strings.Cut(s.Library, ".") // before the first dot is the CUDA version
	switch {
	case s.Mismatch:
		f.Verdict, f.Action = checks.Fail, checks.Reboot
		f.Reason = "the kernel driver and its library are of different versions: the driver was updated without a reboot"
	case s.Driver == "":
		f.Reason = "driver version not read"
	case library == "":
		f.Verdict, f.Reason = checks.NotApplicable, "the library does not tell its version"
	case library != s.Driver:
		f.Verdict, f.Action = checks.Pass, checks.Watch
		f.Reason = fmt.Sprintf("library %s works with kernel driver %s, of another version", library, s.Driver)
	default:
		f.Verdict, f.Reason = checks.Pass, "driver and library are "+s.Driver
	}
	return f
}

// String is the mode's name in policy.
func (c Compute) String() string {
	if c >= 0 && int(c) < len(computeNames) {
		return computeNames[c]
	}
	return fmt.Sprintf("mode_%d", int(c))
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func evidence(r Reading) string {
	var out []string
	if r.HavePersistence == checks.Read {
		out = append(out, "persistence="+onOff(r.Persistence))
	}
	if r.HaveCompute == checks.Read {
		out = append(out, "compute="+r.Compute.String())
	}
	if r.HaveMIG == checks.Read {
		out = append(out, "mig="+onOff(r.MIG))
	}
	return strings.Join(out, " ")
}
