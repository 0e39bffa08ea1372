package catalog

import (
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/xid"
)

func xidChecks() []Check {
	return []Check{
		{
			ID: xid.ID, Title: "what the GPU driver writes to the kernel log", Unit: "XID",
			Doc: `Reads XIDs from the kernel log, and takes those that NVML raises. The same code of one GPU from both within
agent.incident_gap is one, and the log's line is what counts, since it has the text; an event that no line tells of, because the log
cannot be read or has lost records, is judged by its number alone. The driver's own verdict (154) outranks the message's text, which outranks the
number. A job's own faults (13, 31, 43) and the teardowns that follow any fault (45) ask for nothing; an injected test
(14) neither; a code that is not known is watched and alerted on and changes no state. A line that was cut before its number,
or is damaged there, is Unknown and changes none either; lines that ran together count each. NVLink errors are decoded: 74 by
its registers, 144 to 150 by unit, status and subcode in the layouts of older and newer drivers. Engine exceptions on one
TPC (13) and page faults on one GPU (31) are a soft fault when many processes have them, and no other GPU shows them.
Lines with one root cause count once.`,
			Source:  `kernel log; nvmlEventSetWait, nvmlEventTypeXidCriticalError; open-gpu-kernel-modules kernel_rc.c; NVIDIA, "Xid Errors", by the table xid.csv`,
			Applies: "every NVIDIA GPU",
			Action:  "by code: none, watch or restart_app; reset_gpu, reboot or rma (hard); drain, fix_config",
			Cost:    "1 call a GPU at the start, and 1 in 2 s for the node that waits for events",
			Thresholds: []Threshold{
				{"xid.actions", func(p policy.Policy) any { return p.XID.Actions }},
				{"xid.same_tpc", func(p policy.Policy) any { return p.XID.SameTPC }},
				{"xid.same_gpu", func(p policy.Policy) any { return p.XID.SameGPU }},
				{"xid.repeat_window", func(p policy.Policy) any { return p.XID.RepeatWindow }},
				{"xid.nvml_events", func(p policy.Policy) any { return p.XID.NVMLEvents }},
				{"agent.incident_gap", func(p policy.Policy) any { return p.Agent.IncidentGap }},
				{"agent.incident_cause", func(p policy.Policy) any { return p.Agent.IncidentCause }},
			},
			Revision: 1,
			Neighbours: Neighbours{
				NHC:        "Azure: 18 codes in the last 2 h of syslog, without 94, 95 and all from 140 on",
				Gpud:       "by code, over 3 to 14 days, until a reboot; 133 and those above 173 are dropped; MIG and short forms are not read",
				NVSentinel: "every code whose catalogue action is not none is fatal, as is one that is not known; MIG forms are not read",
				DCGM:       "48 64 74 79 95 119 120 140 fail, 21 others warn, the rest are ignored",
			},
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
			Neighbours: Neighbours{
				NHC:        "none",
				Gpud:       "by code, 64 fatal and 29 warnings; others are dropped",
				NVSentinel: "lines that name a link; others are not read",
				DCGM:       "NVSwitch errors by its own counters, not by the log",
			},
		},
	}
}
