// Package sim is the simulated hardware of one node: a directory that holds what the driver, the kernel log, sysfs and
// the boot id show, under the real agent. A scenario file describes a fleet; Init makes one node's directory from it;
// Set, XID, Reset and Reboot change it while the agent runs, and Run plays the scenario's timed events.
//
// A node's directory:
//
//	state.json         all that is simulated; the truth, written by this package only
//	nvml.state         the same for the library, in binary (nvmllib/src/state.h)
//	nvml.calls         how often each NVML function was called, counted by the library
//	libcuda.so.1       a link to the simulated CUDA driver, where it was built; program names what answers its calls
//	libnvidia-ml.so.1  a link to the library, or a copy without some symbols
//	libdcgm.so.4       a link to the simulated DCGM, dcgmi one to what acts as it, on a node that has DCGM; dcgm.state is what
//	                   they answer from, dcgm.watches what the host engine remembers
//	kmsg               the kernel log as /dev/kmsg gives it
//	sysfs/             bus/pci/devices, class/dmi/id, class/{infiniband,net,nvme} and devices/system
//	proc/              mounts, memory, taint and the processes that are stuck
//	calls/             what statfs of each mount, adjtimex and the disks' health logs say; a fifo for one that never comes back
//	boot_id            as /proc/sys/kernel/random/boot_id
//	lock               held while one of the above is changed
package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Paths are the files of a node's directory that stand for the machine's own.
type Paths struct {
	Kmsg    string // /dev/kmsg
	Sysfs   string // /sys
	BootID  string // /proc/sys/kernel/random/boot_id
	Library string // libnvidia-ml.so.1
	Proc    string // /proc
	CUDA    string // libcuda.so.1
	Calls   string // the answers of system calls, as files

	DCGMLibrary string // libdcgm.so.4
	Dcgmi       string // dcgmi
}

// In names the files in a node's directory.
func In(dir string) Paths {
	return Paths{
		Kmsg: filepath.Join(dir, "kmsg"), Sysfs: filepath.Join(dir, "sysfs"),
		BootID: filepath.Join(dir, "boot_id"), Proc: filepath.Join(dir, "proc"), Calls: filepath.Join(dir, "calls"), Library: filepath.Join(dir, "libnvidia-ml.so.1"), CUDA: filepath.Join(dir, "libcuda.so.1"),
		DCGMLibrary: filepath.Join(dir, "libdcgm.so.4"), Dcgmi: filepath.Join(dir, "dcgmi"),
	}
}

// EnvDir is the environment variable that tells the simulated library which node it is on.
const EnvDir = "ASSAY_SIM_DIR"

// locked runs f while no other process changes the node in dir.
func locked(dir string, f func() error) error {
	l, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("simulated node: %w", err)
	}
	defer l.Close()
	for {
		err := syscall.Flock(int(l.Fd()), syscall.LOCK_EX)
		if err == nil {
			break
		}
		if err != syscall.EINTR {
			return fmt.Errorf("simulated node %s: lock: %w", dir, err)
		}
	}
	return f()
}

// replace writes a file beside path and renames it over path: readers see the old content or the new.
func replace(path string, data []byte) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
