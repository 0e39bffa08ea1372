package catalog

import (
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/policy"
)

func driverChecks() []Check {
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
			Neighbours: Neighbours{
				NHC:        "`nvidia-smi` exits other than 0: 9 no driver, 12 no NVML, 15 off the bus",
				Gpud:       "a library that is missing is healthy in every check; a lost GPU asks for a reboot; the NVLink query has 2 min",
				NVSentinel: "calls have 45 s; what hangs is stored, and acts only when switched on; off the bus: restart the machine",
				DCGM:       "none for a call that hangs; XID 79, 119 and 120 fail",
			},
		},
	}
}
