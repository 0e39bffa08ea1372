// Package hostlog judges what the kernel says of the host itself: CPUs that are stuck, tasks that hang, memory that ran out
// or is broken, machine checks.
//
// A job's own doing, such as running out of its memory, is the job's. Errors that the hardware corrected are watched, and
// what it could not correct is a soft fault. A task that hangs is watched, since a slow file server makes all nodes' tasks
// hang at once; one of the GPU driver's own that hangs for minutes is a soft fault. A disk that comes back after it did not
// answer is watched; one that does not, and a file system that was stopped, is a soft fault.
//
// Sources: Linux kernel/hung_task.c, kernel/watchdog.c, kernel/rcu/tree_stall.h, mm/oom_kill.c, mm/memory-failure.c,
// arch/x86/kernel/cpu/mce, drivers/edac/edac_mc.c, drivers/edac/mce_amd.c, drivers/firmware/efi/cper.c, kernel/panic.c,
// drivers/nvme/host/pci.c, fs/ext4/super.c, fs/xfs/xfs_fsops.c, fs/btrfs/messages.c.
package hostlog

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// ID is the check's catalog id.
const ID = "hostlog"

// An Event is one line.
type Event struct {
	Kind Kind
	Task string        // the task's name, which its user chose; empty when the line does not say
	Disk string        // the disk or the file system's device, as nvme0 or dm-0; empty when the line does not say
	Why  string        // of Panic: what over
	For  time.Duration // how long it has been stuck; 0 when the line does not say
	Raw  string
}

// A Kind says what a line tells.
type Kind uint8

const (
	HungTask Kind = iota + 1
	SoftLockup
	HardLockup
	Stall         // of read-copy-update: a CPU does not come to rest
	OutOfMemory   // of the whole host
	JobMemory     // of one control group
	Corrected     // a hardware error that was corrected
	Uncorrected   // one that was not
	MachineCheck  // one was logged; which, its own lines say
	MemoryFailure // a page was taken out of use
	Panic         // the kernel gave up; this is from what it left behind
	DiskTimeout   // a disk did not answer in time
	DiskDown      // a disk's controller stopped, and is reset
	DiskLost      // it could not be brought back
	ReadOnly      // a file system has been stopped after an error
)

// sentences are looked for in this order; the first that a line holds decides. Those that make a fault are longer than the 15
// bytes of a process's name, which its user chooses and many a line prints.
var sentences = [...]struct {
	words string
	kind  Kind
}{
	{"Kernel panic - not syncing", Panic}, // it may quote any other
	{"blocked for more than ", HungTask},
	{"soft lockup - CPU#", SoftLockup},
	{"etected hard LOCKUP on cpu", HardLockup},
	{"Hard LOCKUP", HardLockup}, // on POWER, after the watchdog's name
	{"self-detected stall on CPU", Stall},
	{"detected stalls on CPUs/tasks", Stall},
	{"emory cgroup out of memory: Kill", JobMemory},
	{"ut of memory: Kill", OutOfMemory},
	{"Memory failure: 0x", MemoryFailure},
	{"event severity: fatal", Uncorrected},
	{"event severity: recoverable", Uncorrected},
	{"event severity: corrected", Corrected},
	{"event severity: info", Corrected},
	{"Machine Check Exception", Uncorrected},
	{"Machine check: ", Uncorrected},
	{"Machine Check: ", MachineCheck}, // with the bank's status: see uncorrected
	{"Uncorrected error", Uncorrected},
	{"Uncorrected, software ", Uncorrected},
	{"System Fatal error", Uncorrected},
	{"Deferred error", MachineCheck},
	{"Corrected error", Corrected},
	{"Machine check events logged", MachineCheck},
}

// Parse reads one line of the kernel log, with any prefix; false for one that says none of this. It never panics, and
// allocates nothing for a line it refuses.
func Parse(line string) (Event, bool) {
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	if e, ok := parseEDAC(line); ok {
		return e, true
	}
	if e, ok := parseDisk(line); ok {
		return e, true
	}
	for _, s := range sentences {
		i := strings.Index(line, s.words)
		if i < 0 {
			continue
		}
		e := Event{Kind: s.kind}
		switch after := line[i+len(s.words):]; s.kind {
		case HungTask:
			e.For = leadingSeconds(after)
			e.Task = hungTask(line[:i])
			if e.For == 0 || e.Task == "" {
				return Event{}, false
			}
		case Panic:
			_, why, _ := strings.Cut(after, ": ")
			e.Why = checks.OneLine(why)
		case SoftLockup:
			_, after, _ = strings.Cut(after, "stuck for ")
			e.For = leadingSeconds(after)
		case HardLockup:
			if !strings.Contains(line[:i+len(s.words)], "atchdog") {
				return Event{}, false // a process that is named so
			}
		case Corrected, Uncorrected, MachineCheck:
			if !strings.Contains(line, "[Hardware Error]") && !strings.Contains(line, "mce: ") {
				return Event{}, false
			}
			if s.kind == MachineCheck && uncorrected(after) {
				e.Kind = Uncorrected
			}
		}
		e.Raw = checks.OneLine(line)
		return e, true
	}
	return Event{}, false
}

// parseEDAC reads "EDAC MC0: 1 CE memory read error on CPU_SrcID#0 …" and the same with UE. What it says of the place,
// "on CPU_SrcID#0 (channel:0", tells it from a process that is named so.
func parseEDAC(line string) (Event, bool) {
	i := strings.Index(line, "EDAC MC")
	if i < 0 {
		return Event{}, false
	}
	_, said, _ := strings.Cut(line[i:], ": ")
	n, said, _ := strings.Cut(said, " ")
	what, _, placed := strings.Cut(said, " (")
	if n == "" || strings.Trim(n, "0123456789") != "" || !placed || !strings.Contains(what, "on ") {
		return Event{}, false
	}
	switch {
	case strings.HasPrefix(said, "CE "):
		return Event{Kind: Corrected, Raw: checks.OneLine(line)}, true
	case strings.HasPrefix(said, "UE "):
		return Event{Kind: Uncorrected, Raw: checks.OneLine(line)}, true
	}
	return Event{}, false
}

// uncorrected reads "0 Bank 5: be00000000800400", the state of the machine and the status of one of its banks: bit 63 of
// the latter says that it is valid, bit 61 that the error was not corrected (Intel SDM vol. 3B, IA32_MCi_STATUS; AMD has
// both in the same place). The kernel prints so what it polls, too: corrected errors, and those of before the boot.
func uncorrected(s string) bool {
	_, s, ok := strings.Cut(s, " Bank ")
	if !ok {
		return false
	}
	_, s, ok = strings.Cut(s, ": ")
	if !ok {
		return false
	}
	s, _, _ = strings.Cut(s, " ")
	status, err := strconv.ParseUint(s, 16, 64)
	return err == nil && status>>63 == 1 && status>>61&1 == 1
}

// leadingSeconds reads "120 seconds." or "226906s!".
func leadingSeconds(s string) time.Duration {
	n := 0
	for n < len(s) && n < 9 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	v, err := strconv.Atoi(s[:n])
	if err != nil || !strings.HasPrefix(strings.TrimLeft(s[n:], " "), "s") {
		return 0
	}
	return time.Duration(v) * time.Second
}

// hungTask reads the name from "INFO: task nvidia-smi:4242 ".
func hungTask(s string) string {
	_, s, ok := strings.Cut(s, "task ")
	i := strings.LastIndexByte(s, ':')
	if !ok || i <= 0 {
		return ""
	}
	return checks.OneLine(s[:i])
}

// OfDriver reports whether a task is the GPU driver's own thread or a tool that waits in it. Anybody may name a process so:
// that makes a node suspect for one retest, and no more.
func OfDriver(task string) bool {
	for _, p := range [...]string{"nvidia", "nv_queue", "nv_open_q", "nv-hostengine", "UVM ", "irq/"} {
		if strings.HasPrefix(task, p) && (p != "irq/" || strings.Contains(task, "nvidia")) {
			return true
		}
	}
	return false
}

// things are what events are of, where several are told as one.
var things = [...]string{
	SoftLockup: "a stuck CPU", HardLockup: "a CPU that answers no interrupt", Stall: "a CPU that does not come to rest", OutOfMemory: "memory that ran out",
	JobMemory: "a job's memory", Corrected: "corrected hardware errors", Uncorrected: "hardware errors that were not corrected", MachineCheck: "machine checks",
	MemoryFailure: "pages taken out of use", Panic: "a panic: ", DiskTimeout: " late", DiskDown: " reset", DiskLost: " lost", ReadOnly: "the file system on ",
}

// of names what an event is of.
func (e Event) of() string {
	switch {
	case e.Kind == HungTask:
		return fmt.Sprintf("task %q", e.Task)
	case int(e.Kind) >= len(things):
		return ""
	case e.Kind == Panic:
		return things[e.Kind] + e.Why
	case e.Kind == ReadOnly:
		return things[e.Kind] + e.Disk
	case e.Disk != "":
		return e.Disk + things[e.Kind]
	}
	return things[e.Kind]
}

// Judge turns a line into a finding without time, node and boot id. None of its faults is hard.
func Judge(e Event, p policy.HostLog) checks.Finding {
	f := checks.Finding{Check: ID, Subject: checks.Subject{Kind: checks.KindNode}, Verdict: checks.NotApplicable, Action: checks.Watch, Evidence: e.Raw}
	fail := func(a checks.Action, format string, args ...any) {
		f.Verdict, f.Action, f.Reason = checks.Fail, a, fmt.Sprintf(format, args...)
	}
	f.Of = e.of()
	switch e.Kind {
	case DiskTimeout, DiskDown, DiskLost, ReadOnly:
		return judgeDisk(f, e)
	case Panic:
		fail(checks.Reboot, "the kernel panicked: %s", e.Why)
		switch {
		case strings.Contains(e.Why, "achine check") || strings.Contains(e.Why, "Not all CPUs entered broadcast exception handler"):
			f.Action = checks.Drain
		case strings.Contains(e.Why, "sysrq triggered"):
			f.Verdict, f.Action = checks.NotApplicable, checks.Watch // by a person
		}
	case HungTask:
		f.Reason = fmt.Sprintf("task %q is blocked for %s", e.Task, e.For)
		if OfDriver(e.Task) && policy.Duration(e.For) > p.HungTask {
			fail(checks.Reboot, "task %q of the GPU driver is blocked for %s, longer than %s", e.Task, e.For, p.HungTask)
		}
	case SoftLockup:
		f.Reason = fmt.Sprintf("a CPU is stuck for %s", e.For)
		if policy.Duration(e.For) > p.SoftLockup {
			fail(checks.Reboot, "a CPU is stuck for %s, longer than %s", e.For, p.SoftLockup)
		}
	case HardLockup:
		fail(checks.Reboot, "a CPU answers no interrupt")
	case Stall:
		f.Reason = "a CPU does not come to rest"
	case OutOfMemory:
		f.Reason = "the host ran out of memory, and a process was killed"
	case JobMemory:
		f.Action, f.Reason = checks.RestartApp, "a job ran out of its memory, and one of its processes was killed"
	case Corrected:
		f.Reason = "a hardware error was corrected"
	case Uncorrected:
		fail(checks.Drain, "a hardware error was not corrected")
	case MachineCheck:
		f.Reason = "machine checks were logged"
	case MemoryFailure:
		f.Reason = "a page of memory was taken out of use"
	default:
		f.Reason = "a line that this version does not judge"
	}
	return f
}
