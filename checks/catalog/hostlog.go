package catalog

import (
	"github.com/assay-gpu/assay/checks/hostlog"
	"github.com/assay-gpu/assay/checks/policy"
)

func hostlogChecks() []Check {
	return []Check{
		{
			ID: hostlog.ID, Title: "what the kernel says of the host", Unit: "lines",
			Doc: `Reads the kernel's lines on CPUs that are stuck, tasks that hang, memory that ran out, and hardware errors of the host
(machine checks, EDAC, firmware records). A CPU stuck for long, one that answers no interrupt, a task of the GPU driver
that hangs for minutes, and an error that was not corrected are soft faults. Other tasks that hang are watched: a slow
file server makes those of all nodes hang at once. A job that ran out of its own memory is the job's.`,
			Source:  "kernel log; Linux kernel/hung_task.c, kernel/watchdog.c, mm/oom_kill.c, drivers/edac; leptonai/gpud for the task's limit",
			Applies: "every host",
			Action:  "reboot; drain for hardware errors; watch; restart_app",
			Cost:    "no driver call",
			Thresholds: []Threshold{
				{"host_log.soft_lockup", func(p policy.Policy) any { return p.HostLog.SoftLockup }},
				{"host_log.hung_task", func(p policy.Policy) any { return p.HostLog.HungTask }},
			},
			Revision: 1,
			Neighbours: Neighbours{
				NHC:        "machine checks by mcelog; the rest not",
				Gpud:       "hung tasks, lockups and memory that ran out are events; a task of the driver in five looks a minute apart asks for a reboot",
				NVSentinel: "none",
				DCGM:       "none",
			},
		},
	}
}
