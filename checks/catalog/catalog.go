package catalog

import (
	"slices"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/inventory"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/recovery"
	"github.com/assay-gpu/assay/checks/rowremap"
	"github.com/assay-gpu/assay/checks/xid"
)

// A Check is what one check is, in words and in the policy values that it reads.
type Check struct {
	ID         string
	Title      string         // in a few words
	Doc        string         // what it judges and why, for check explain
	Unit       string         // of what it reads
	Source     string         // where the reading, and the rule, are from
	Applies    string         // the hardware and drivers it can judge
	Thresholds []Threshold    // the policy values it reads
	Action     string         // what its faults ask for
	Cost       string         // in driver calls and time
	Suites     []checks.Level // the suites it is part of; none for a check of events
	Revision   int            // rises when the rule changes, so that older certificates do not speak for it
}

// A Threshold is one policy value that a check reads.
type Threshold struct {
	Path  string // in the policy file, as ecc.max_volatile_uncorrected
	Value func(policy.Policy) any
}

var everySuite = []checks.Level{checks.QuickMIG, checks.Quick, checks.Standard, checks.Soak, checks.Intake}

// All gives every check in run order. A check of events (xid, sxid) is in no suite: a quiet log proves nothing.
func All() []Check {
	return []Check{
		{
			ID: driver.ID, Title: "the driver answers", Unit: "calls",
			Doc: `Loads NVML and asks each GPU, in processes that can be killed. A GPU that the driver has lost, one on which a
call passed its deadline in several fresh processes running, one left alone since such a call (blocked), and a
process that outlives SIGKILL are hard faults: only a reboot clears them. A call that hung once, a library that is
missing, or any other error leaves the verdict open.`,
			Source:  "nvmlInit_v2; NVML_ERROR_GPU_IS_LOST; deadlines around every call",
			Applies: "every NVIDIA GPU",
			Action:  "reboot (hard)",
			Cost:    "no call of its own; sees how the others' calls went",
			Thresholds: []Threshold{
				{"agent.hung_children", func(p policy.Policy) any { return p.Agent.HungChildren }},
				{"agent.call_deadline", func(p policy.Policy) any { return p.Agent.CallDeadline }},
				{"agent.init_deadline", func(p policy.Policy) any { return p.Agent.InitDeadline }},
				{"agent.stuck_child", func(p policy.Policy) any { return p.Agent.StuckChild }},
			},
			Suites: everySuite, Revision: 1,
		},
		{
			ID: inventory.ID, Title: "the GPUs are all there, and the right ones", Unit: "GPUs",
			Doc: `Compares the GPUs the driver counts with those accepted at enrolment, by UUID, and with policy. A GPU that is
missing is a hard fault. A GPU of another identity in its place, one too many, another product or another driver than
policy names is for a person to settle. Without anything to compare with, a node that shows GPUs passes.`,
			Source:  "nvmlDeviceGetCount_v2, nvmlDeviceGetUUID, nvmlDeviceGetName, nvmlSystemGetDriverVersion",
			Applies: "every NVIDIA GPU",
			Action:  "reboot for a missing GPU (hard); fix_config otherwise",
			Cost:    "1 call a node and 5 a GPU; what does not change is read once a start",
			Thresholds: []Threshold{
				{"inventory.count", func(p policy.Policy) any { return p.Inventory.Count }},
				{"inventory.name", func(p policy.Policy) any { return p.Inventory.Name }},
				{"inventory.driver", func(p policy.Policy) any { return p.Inventory.Driver }},
			},
			Suites: everySuite, Revision: 1,
		},
		{
			ID: recovery.ID, Title: "the driver's own verdict", Unit: "recovery action",
			Doc: `Reads the recovery action that the driver itself asks for: the same fact that XID 154 announces, and still there
when the log line was missed. Reset, reboot and drain-and-reset are hard faults; draining peer-to-peer traffic is a soft
one. A value that is not known here leaves the verdict open and is alerted on; it is never taken for healthy.`,
			Source:  "nvmlDeviceGetFieldValues, field NVML_FI_DEV_GET_GPU_RECOVERY_ACTION; NVIDIA/DCGM 263",
			Applies: "drivers since R565; older ones say not supported",
			Action:  "reset_gpu or reboot (hard); drain",
			Cost:    "1 call a GPU",
			Suites:  everySuite, Revision: 1,
		},
		{
			ID: rowremap.ID, Title: "the row remapper has spare rows", Unit: "rows",
			Doc: `Reads the row remapper, which swaps faulty memory rows for spare ones. A pending remap is safe to compute on and
takes effect at the next GPU reset, so it passes and asks for a reset when the node is idle. A remap that failed is
grounds for RMA and a hard fault. Many rows remapped after correctable errors foretell worse: 83 % of such nodes regress
(Anubis, ATC'24).`,
			Source:     `nvmlDeviceGetRemappedRows; NVIDIA, "GPU Memory Error Management"`,
			Applies:    "A100 and later; others say not supported",
			Action:     "rma for a failed remap (hard); drain; reset_gpu when idle for a pending one",
			Cost:       "1 call a GPU",
			Thresholds: []Threshold{{"row_remap.max_correctable", func(p policy.Policy) any { return p.RowRemap.MaxCorrectable }}},
			Suites:     everySuite, Revision: 1,
		},
		{
			ID: ecc.ID, Title: "error-correcting memory is on, and quiet", Unit: "errors since the driver was loaded",
			Doc: `Reads whether ECC is on and what it has counted. Counters that read N/A are not zero: they leave the verdict open.
None of its faults is hard: where an error harms the GPU, the driver says so itself (see recovery).`,
			Source:  "nvmlDeviceGetEccMode, nvmlDeviceGetTotalEccErrors, nvmlDeviceGetSramEccErrorStatus; facebookresearch/gcm for the corrected limit",
			Applies: "GPUs with ECC; others say not supported",
			Action:  "reset_gpu; drain; rma beyond the driver's SRAM threshold; fix_config where it is off",
			Cost:    "6 calls a GPU",
			Thresholds: []Threshold{
				{"ecc.max_volatile_uncorrected", func(p policy.Policy) any { return p.ECC.MaxVolatileUncorrected }},
				{"ecc.max_volatile_corrected", func(p policy.Policy) any { return p.ECC.MaxVolatileCorrected }},
				{"ecc.require_enabled", func(p policy.Policy) any { return p.ECC.RequireEnabled }},
			},
			Suites: everySuite, Revision: 1,
		},
		{
			ID: xid.ID, Title: "what the GPU driver writes to the kernel log", Unit: "XID",
			Doc: `Reads XIDs from the kernel log. The driver's own verdict (154) outranks the message's text, which outranks the
number. A job's own faults (13, 31, 43) and the teardowns that follow any fault (45) ask for nothing; an injected test
(14) neither; a code that is not known is watched and alerted on and changes no state. Lines with one root cause count
once.`,
			Source:  `kernel log; open-gpu-kernel-modules kernel_rc.c; NVIDIA, "Xid Errors", by the table xid.csv`,
			Applies: "every NVIDIA GPU",
			Action:  "by code: none, watch or restart_app; reset_gpu, reboot or rma (hard); drain, fix_config",
			Cost:    "no driver call",
			Thresholds: []Threshold{
				{"xid.actions", func(p policy.Policy) any { return p.XID.Actions }},
				{"agent.incident_gap", func(p policy.Policy) any { return p.Agent.IncidentGap }},
				{"agent.incident_cause", func(p policy.Policy) any { return p.Agent.IncidentCause }},
			},
			Revision: 1,
		},
		{
			ID: xid.SwitchID, Title: "what the NVSwitch driver writes to the kernel log", Unit: "SXid",
			Doc: `Reads SXids from the kernel log. The severity in the message outranks the table. A fatal one ends what runs on the
fabric; it is a soft fault, since it does not say whose GPU is to blame, and no fault of its own beside a GPU that is
lost. A code that is not known is watched.`,
			Source:  `kernel log; NVIDIA, "Fabric Manager for NVIDIA NVSwitch Systems", by the table sxid.txt`,
			Applies: "nodes with NVSwitches",
			Action:  "reboot; watch",
			Cost:    "no driver call",
			Thresholds: []Threshold{
				{"agent.incident_gap", func(p policy.Policy) any { return p.Agent.IncidentGap }},
			},
			Revision: 1,
		},
	}
}

// Lookup gives a check by id.
func Lookup(id string) (Check, bool) {
	all := All()
	i := slices.IndexFunc(all, func(c Check) bool { return c.ID == id })
	if i < 0 {
		return Check{}, false
	}
	return all[i], true
}

// IDs gives the ids of all checks in run order.
func IDs() []string {
	var out []string
	for _, c := range All() {
		out = append(out, c.ID)
	}
	return out
}

// Mode says how far a check's findings may go: its own mode in p or, where p has none for it, the fleet's. A fleet that
// observes can so switch single checks to act, and one that acts can hold single checks back.
func Mode(p policy.Policy, id string) policy.Mode {
	if m := p.Checks[id].Mode; m != "" {
		return m
	}
	return p.Mode
}

// Acts reports whether anything may be done about a check's findings.
func Acts(p policy.Policy, id string) bool { return Mode(p, id) == policy.Act }

// runs reports whether the check judges at all.
func runs(p policy.Policy, id string) bool { return Mode(p, id) != policy.Off }
