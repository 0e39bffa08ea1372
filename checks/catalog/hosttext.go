package catalog

import (
	"github.com/assay-gpu/assay/checks/cpu"
	"github.com/assay-gpu/assay/checks/kernel"
	"github.com/assay-gpu/assay/checks/memory"
	"github.com/assay-gpu/assay/checks/mounts"
	"github.com/assay-gpu/assay/checks/nvme"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/port"
	"github.com/assay-gpu/assay/checks/processes"
	"github.com/assay-gpu/assay/checks/timesync"
)

// portThresholds are the policy values of one class of ports.
func portThresholds(section string, of func(policy.Policy) policy.Ports) []Threshold {
	return []Threshold{
		{section + ".count", func(p policy.Policy) any { return of(p).Count }},
		{section + ".rate", func(p policy.Policy) any { return of(p).Rate }},
		{section + ".require", func(p policy.Policy) any { return of(p).Require }},
		{section + ".ignore", func(p policy.Policy) any { return of(p).Ignore }},
		{section + ".drop", func(p policy.Policy) any { return of(p).Drop }},
		{section + ".flaps", func(p policy.Policy) any { return of(p).Flaps }},
		{section + ".flap_down", func(p policy.Policy) any { return of(p).FlapDown }},
		{section + ".flap_window", func(p policy.Policy) any { return of(p).FlapWindow }},
		{section + ".counters", func(p policy.Policy) any { return of(p).Counters }},
	}
}

// hostChecks are the checks of the node itself, in run order.
func hostChecks() []Check {
	return []Check{
		{
			ID: port.Infiniband, Title: "the InfiniBand ports are up, at rate and steady", Unit: "ports; errors within a window",
			Doc: `Reads every RDMA port, whatever its link layer. A port should be up that policy counts or that has been up on this
node before; one that was never cabled does not apply. Down for some minutes, or down and up again several times in
half a day, is a fault; the latter stays one until the node boots or a person clears it. So is a rate below what policy
names or the port has had. Of ports that policy requires together, one must be up at the rate. Counters count by their rise within a whole window; link_downed that recovers is not believed
a second time in the same boot. So is a driver whose files do not come back. A counter that stands at its greatest value says so.`,
			Source:     "/sys/class/infiniband; leptonai/gpud (drop, flap), NVIDIA/NVSentinel nic-health-monitor, Azure/cyclecloud-healthagent (counters, strikes)",
			Applies:    "nodes with RDMA ports; virtual functions are left out",
			Action:     "drain; fix_config for a port switched off; watch",
			Cost:       "about 10 small files a port; no driver call on ports that were never up",
			Thresholds: portThresholds("infiniband", func(p policy.Policy) policy.Ports { return p.Infiniband }),
			Suites:     everySuite, Revision: 2,
			Neighbours: Neighbours{NHC: "check_hw_ib: as many ports at a rate as configured; Azure: 5 lost carriers of a device in 24 h", Gpud: "30 s: rates by product; down 4 min; 3 flaps in 12 h, until set healthy; needs ibstat on some hosts", NVSentinel: "1 s: any rise of link_downed and some others is fatal; ports never cabled by their peers", DCGM: "none"},
		},
		{
			ID: port.Ethernet, Title: "the Ethernet ports are up, at speed and steady", Unit: "ports; changes within a window",
			Doc: `Reads every physical Ethernet interface by the same rules as infiniband, with the carrier's changes for link_downed.
An interface that was never up, or that a person has switched off and that was never up, does not apply.`,
			Source:     "/sys/class/net; leptonai/gpud (drop, flap), NVIDIA/NVSentinel nic-health-monitor (carrier_changes)",
			Applies:    "nodes with PCI or virtio network interfaces",
			Action:     "drain; fix_config for an interface switched off; watch",
			Cost:       "about 8 small files an interface",
			Thresholds: portThresholds("ethernet", func(p policy.Policy) policy.Ports { return p.Ethernet }),
			Suites:     everySuite, Revision: 2,
			Neighbours: Neighbours{NHC: "check_hw_eth: the interface is there", Gpud: "metrics only", NVSentinel: "1 s: link state, more than 2 carrier changes", DCGM: "none"},
		},
		{
			ID: mounts.ID, Title: "the file systems are there, writable, answering and not full", Unit: "bytes, inodes, seconds",
			Doc: `Asks every real file system for its size, each in a thread of its own: one that does not answer is named, and is a fault
after a minute; one that answers with an error is one at once. One that policy names must be there, of its type and size. A local one that was writable on this node and
is read-only now has met errors. A full local one is a fault; a full network one is everybody's, and is watched.`,
			Source:  "/proc/1/mounts, statfs(2); mej/nhc check_fs_*, facebookresearch/gcm check-storage, leptonai/gpud disk",
			Applies: "every node",
			Action:  "drain when it hangs or has turned read-only; fix_config; watch",
			Cost:    "one statfs a file system",
			Thresholds: []Threshold{
				{"mounts.expect", func(p policy.Policy) any { return p.Mounts.Expect }},
				{"mounts.hang", func(p policy.Policy) any { return p.Mounts.Hang }},
				{"mounts.max_used", func(p policy.Policy) any { return p.Mounts.MaxUsed }},
				{"mounts.watch_used", func(p policy.Policy) any { return p.Mounts.WatchUsed }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{NHC: "check_fs_mount, _size, _used, _inodes, as configured; a file server that hangs ends in the whole run's timeout", Gpud: "used space; ro remounts by the kernel log; NFS by writing a file", NVSentinel: "none", DCGM: "none"},
		},
		{
			ID: memory.ID, Title: "the node's own memory is all there, and sound", Unit: "bytes; errors in this boot",
			Doc: `Compares the memory the kernel has with policy, or with the most this node has shown: firmware maps a bad module out
without a word. Uncorrected errors that the kernel has counted in this boot are a fault, many corrected ones on one
module are watched.`,
			Source:  "/proc/meminfo, /sys/devices/system/edac; Linux edac.rst, mcelog.conf, Azure/azurehpc-health-checks",
			Applies: "every node; errors where the kernel has an EDAC driver",
			Action:  "drain; watch",
			Cost:    "2 small files a memory module",
			Thresholds: []Threshold{
				{"memory.bytes", func(p policy.Policy) any { return p.Memory.Bytes }},
				{"memory.tolerance", func(p policy.Policy) any { return p.Memory.Tolerance }},
				{"memory.max_uncorrected", func(p policy.Policy) any { return p.Memory.MaxUncorrected }},
				{"memory.corrected", func(p policy.Policy) any { return p.Memory.Corrected }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{NHC: "check_hw_physmem between two sizes, check_hw_mcelog; Azure: ±5 %", Gpud: "EDAC and OOM by the kernel log", NVSentinel: "none", DCGM: "none"},
		},
		{
			ID: cpu.ID, Title: "the processors are all at work, and their clock is good", Unit: "processors",
			Doc: `Compares the processors at work with policy, or with the most this node has shown, and looks at where the kernel takes
its time from: the fallback for time-stamp counters that differ is slow enough to make collectives crawl.`,
			Source:  "/sys/devices/system/cpu/online, clocksource0/current_clocksource; facebookresearch/gcm, Azure/azurehpc-health-checks",
			Applies: "every node",
			Action:  "drain; fix_config for the clock",
			Cost:    "2 small files",
			Thresholds: []Threshold{
				{"cpu.count", func(p policy.Policy) any { return p.CPU.Count }},
				{"cpu.clocks", func(p policy.Policy) any { return p.CPU.Clocks }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{NHC: "check_hw_cpuinfo: sockets, cores, threads", Gpud: "metrics only", NVSentinel: "none", DCGM: "none"},
		},
		{
			ID: processes.ID, Title: "no process is stuck in the kernel", Unit: "seconds asleep",
			Doc: `Looks for processes in uninterruptible sleep. One that has a GPU open and has slept for minutes, or that has been killed
and does not end, leaves only with a boot. Others wait for a file server more often than not, and are watched.`,
			Source:  "/proc/PID/stat, status, wchan, fd; leptonai/gpud, Azure/cyclecloud-healthagent, facebookresearch/gcm",
			Applies: "every node",
			Action:  "reboot; watch",
			Cost:    "one small file a process; 3 more for each that is asleep",
			Thresholds: []Threshold{
				{"processes.stuck", func(p policy.Policy) any { return p.Processes.Stuck }},
				{"processes.killed", func(p policy.Policy) any { return p.Processes.Killed }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{NHC: "check_ps_blacklist, check_ps_unauth_users, load", Gpud: "an nvidia process in D state at 5 looks a minute apart: reboot; zombies", NVSentinel: "none", DCGM: "none"},
		},
		{
			ID: kernel.ID, Title: "the kernel trusts itself", Unit: "taint flags",
			Doc: `Reads the kernel's taint flags. A machine check, a bad page, an oops or a soft lockup has happened since the node booted:
what it harmed cannot be told, and a boot clears it. What every NVIDIA driver sets says nothing.`,
			Source:  "/proc/sys/kernel/tainted; Linux tainted-kernels.rst",
			Applies: "every node",
			Action:  "reboot; watch",
			Cost:    "1 small file",
			Thresholds: []Threshold{
				{"kernel.fail_taints", func(p policy.Policy) any { return p.Kernel.FailTaints }},
				{"kernel.watch_taints", func(p policy.Policy) any { return p.Kernel.WatchTaints }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{NHC: "none", Gpud: "soft lockup and panics by the kernel log", NVSentinel: "none by the flag; some by log lines", DCGM: "none"},
		},
		{
			ID: nvme.ID, Title: "the NVMe disks are all there and at work", Unit: "disks",
			Doc: `Compares the NVMe disks with policy, or with those this node has shown, and reads their state. A controller that is dead or
gone, and a disk that has turned read-only, are faults. So is what its health log warns of: spare blocks that run out, reliability
that is lost, a backup that failed. One near its own critical temperature, near the end of its life or spare blocks, or with media
errors is watched. The disks are asked for their logs at most every ten minutes, and by every screen; evidence tells how old each
is. A log that the kernel or the disk does not offer does not apply; one that who runs may not read is watched, one that does not come is Unknown.`,
			Source:  "/sys/class/nvme, its hwmon; Get Log Page 02h by NVME_IOCTL_ADMIN_CMD; Linux drivers/nvme, NVM Express Base Specification 2.0 5.16.1.3, Azure/azurehpc-health-checks",
			Applies: "nodes with NVMe disks",
			Action:  "drain; watch",
			Cost:    "about 8 small files a disk; 1 admin command a disk every 10 minutes, and in a screen",
			Thresholds: []Threshold{
				{"nvme.count", func(p policy.Policy) any { return p.NVMe.Count }},
				{"nvme.margin", func(p policy.Policy) any { return p.NVMe.Margin }},
				{"nvme.fail_warnings", func(p policy.Policy) any { return p.NVMe.FailWarnings }},
				{"nvme.watch_spare", func(p policy.Policy) any { return p.NVMe.WatchSpare }},
				{"nvme.watch_used", func(p policy.Policy) any { return p.NVMe.WatchUsed }},
				{"nvme.watch_media_errors", func(p policy.Policy) any { return p.NVMe.WatchMediaErrors }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{NHC: "none; Azure: as many as the profile says", Gpud: "timeouts by the kernel log", NVSentinel: "none", DCGM: "none"},
		},
		{
			ID: timesync.ID, Title: "the wall clock follows something", Unit: "seconds off",
			Doc: `Asks the kernel whether its wall clock is being corrected and how far off it may be. Nothing in assay depends on it; logs
and job accounting do. It is watched, unless policy requires it.`,
			Source:  "adjtimex(2)",
			Applies: "every node",
			Action:  "watch; fix_config where policy requires it",
			Cost:    "1 system call",
			Thresholds: []Threshold{
				{"timesync.require", func(p policy.Policy) any { return p.TimeSync.Require }},
				{"timesync.max_error", func(p policy.Policy) any { return p.TimeSync.MaxError }},
				{"timesync.after", func(p policy.Policy) any { return p.TimeSync.After }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{NHC: "none; a site may run check_cmd_output on chronyc", Gpud: "none", NVSentinel: "none", DCGM: "none"},
		},
	}
}
