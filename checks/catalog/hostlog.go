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
(machine checks, EDAC, firmware records), on disks that do not answer, file systems that were stopped, and what a panic left
behind. A CPU stuck for long, one that answers no interrupt, a task of the GPU driver that hangs for minutes, an error that was
not corrected, a disk that could not be brought back, a file system that was stopped and a panic are soft faults. Other tasks
that hang are watched: a slow file server makes those of all nodes hang at once; so is a disk that comes back. A job that ran
out of its own memory is the job's. What repeats is counted, and names the tasks and disks that it is of.`,
			Source:  "kernel log, and what pstore keeps of one; Linux kernel/hung_task.c, kernel/watchdog.c, kernel/panic.c, mm/oom_kill.c, drivers/edac, drivers/nvme/host/pci.c, fs/ext4, fs/xfs, fs/btrfs; leptonai/gpud for the task's limit",
			Applies: "every host",
			Action:  "reboot; drain for hardware errors, disks and file systems; watch; restart_app",
			Cost:    "no driver call",
			Thresholds: []Threshold{
				{"host_log.soft_lockup", func(p policy.Policy) any { return p.HostLog.SoftLockup }},
				{"host_log.hung_task", func(p policy.Policy) any { return p.HostLog.HungTask }},
			},
			Revision: 1,
			Neighbours: Neighbours{
				NHC:        "machine checks by mcelog; the rest not",
				Gpud:       "hung tasks, lockups and memory that ran out are events; a task of the driver in five looks a minute apart asks for a reboot; NVMe timeouts, read-only file systems and panics are events",
				NVSentinel: "none",
				DCGM:       "none",
			},
		},
	}
}
