package host

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/processes"
)

// Bounds on how closely sleeping processes are looked at.
const (
	maxSleeping = 64
	maxFiles    = 256
)

// Of Linux include/linux/sched.h and asm-generic/signal.h.
const (
	flagKernelThread = 0x00200000 // PF_KTHREAD
	signalKill       = 9
)

// kernelThreads are the pids of kernel threads, which are most of a large node's processes and never of interest. A pid may
// become another's, so that they are found anew now and then.
type kernelThreads struct {
	known map[int]bool
	looks int
}

// renewThreads is after how many looks kernel threads are found anew: ten minutes at one each half a minute.
const renewThreads = 20

func (k *kernelThreads) begin() {
	if k.looks%renewThreads == 0 {
		k.known = map[int]bool{}
	}
	k.looks++
}

// processesOf finds the processes in uninterruptible sleep, kernel threads aside. Of the others nothing is kept.
func processesOf(r *recorder, threads *kernelThreads) processes.Reading {
	threads.begin()
	entries, err := r.List("proc")
	if err != nil {
		return processes.Reading{Err: "proc: " + err.Error()}
	}
	out := processes.Reading{Have: checks.Read}
	seen := false
	for _, e := range entries {
		pid, err := strconv.Atoi(e)
		if err != nil || threads.known[pid] {
			continue
		}
		text, err := r.quiet("proc/" + e + "/stat")
		if err != nil {
			continue // it has ended
		}
		seen = true
		x, asleep, kernel := parseStat(pid, text)
		if kernel {
			threads.known[pid] = true
		}
		if !asleep || len(out.Sleeping) >= maxSleeping {
			continue
		}
		r.got["proc/"+e+"/stat"] = text
		look(r, &x)
		out.Sleeping = append(out.Sleeping, x)
	}
	if _, replay := r.src.(Texts); !seen && !replay {
		return processes.Reading{Err: "proc shows no process"}
	}
	slices.SortFunc(out.Sleeping, func(a, b processes.Process) int { return cmp.Compare(a.PID, b.PID) })
	return out
}

// parseStat reads /proc/PID/stat: pid (comm) state ppid … with flags the 9th field and the start time the 22nd. The name
// may hold anything, brackets too. Kernel threads are never asleep in our sense.
func parseStat(pid int, text string) (x processes.Process, asleep, kernel bool) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return x, false, false
	}
	f := strings.Fields(text[end+1:])
	if len(f) < 20 {
		return x, false, false
	}
	flags, err := strconv.ParseUint(f[6], 10, 64)
	if kernel = err == nil && flags&flagKernelThread != 0; kernel || err != nil || f[0] != "D" {
		return x, false, kernel
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	return processes.Process{PID: pid, Start: start, Name: text[open+1 : end]}, err == nil, false
}

// look says what a sleeping process waits in, whether it has a GPU open and whether it has been killed. None of the files
// read takes a lock that the process may hold; cmdline does.
func look(r *recorder, x *processes.Process) {
	at := "proc/" + strconv.Itoa(x.PID)
	x.Wait = r.word("%s/wchan", at)
	if x.Wait == "0" {
		x.Wait = ""
	}
	status, _ := r.Text(at + "/status")
	for line := range strings.Lines(status) {
		name, mask, _ := strings.Cut(line, ":")
		if name == "SigPnd" || name == "ShdPnd" {
			n, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			x.Killed = x.Killed || err == nil && n&(1<<(signalKill-1)) != 0
		}
	}
	x.NVIDIA = strings.HasPrefix(x.Name, "nvidia") || strings.HasPrefix(x.Name, "nv-") || strings.HasPrefix(x.Wait, "nv_") || strings.HasPrefix(x.Wait, "nvidia") || strings.HasPrefix(x.Wait, "uvm_")
	fds, _ := r.src.List(at + "/fd")
	for i, fd := range fds {
		if i >= maxFiles || x.NVIDIA {
			break
		}
		if to, err := r.src.Link(at + "/fd/" + fd); err == nil && strings.HasPrefix(to, "/dev/nvidia") {
			x.NVIDIA = true
			r.got[linkPrefix+at+"/fd/"+fd] = to
		}
	}
}
