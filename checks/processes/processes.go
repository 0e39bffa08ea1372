// Package processes judges whether processes are stuck in the kernel, where no signal reaches them.
//
// A process in uninterruptible sleep for minutes waits for hardware or a file server that does not answer. One that waits in
// the GPU driver, or that has been killed and does not end, leaves only once the node boots. Others are watched: a
// file server that comes back frees them. Kernel threads sleep so by design and are left out.
// Sources: leptonai/gpud (nvidia process in D state at 5 checks a minute apart: reboot), Azure/cyclecloud-healthagent
// (pending kill), facebookresearch/gcm (300 s), leptonai/gpud 117.
package processes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/strike"
	"github.com/assay-gpu/assay/checks/tally"
)

// ID is the check's catalog id.
const ID = "processes"

// A Reading is the processes in uninterruptible sleep at one moment.
type Reading struct {
	Have     checks.Availability `json:"have"`
	Err      string              `json:"err,omitempty"`
	Sleeping []Process           `json:"sleeping,omitempty"` // by pid
}

// A Process is one process in uninterruptible sleep.
type Process struct {
	PID    int           `json:"pid"`
	Start  uint64        `json:"start"`            // clock ticks after boot: tells it from a later one with its pid
	Name   string        `json:"name"`             // the kernel's 15 bytes of it; user-controlled
	Wait   string        `json:"wait,omitempty"`   // the kernel function it waits in
	NVIDIA bool          `json:"nvidia,omitempty"` // it is the driver's, or has a GPU open
	Killed bool          `json:"killed,omitempty"` // SIGKILL is pending
	For    time.Duration `json:"for,omitempty"`    // as long as every look has found it so; Track fills it
}

// forget is how far apart two looks may be for a process found asleep at both to have slept all the time between.
const forget = 3 * time.Minute

// Track fills in for how long each process has been asleep. at is on the boot clock.
func Track(book *strike.Book, at time.Duration, r Reading) Reading {
	if r.Have != checks.Read {
		return r
	}
	r.Sleeping = slices.Clone(r.Sleeping)
	here := map[string]bool{}
	for i, p := range r.Sleeping {
		key := fmt.Sprintf("%s %d/%d", ID, p.PID, p.Start)
		here[key] = true
		r.Sleeping[i].For = book.Last(key, "asleep", at, true, forget)
	}
	book.Retain(ID+" ", func(key string) bool { return here[key] })
	return r
}

// Judge does no I/O.
func Judge(r Reading, p policy.Processes) checks.Finding {
	if r.Have != checks.Read {
		return tally.Unread(ID, "processes", r.Err)
	}
	t := tally.New(ID)
	var evidence []string
	for _, x := range r.Sleeping {
		what := fmt.Sprintf("process %d (%s)", x.PID, x.Name)
		if x.Wait != "" {
			what += " in " + x.Wait
		}
		lasted := x.For.Round(time.Second)
		switch {
		case x.Killed && x.For >= p.Killed.D():
			t.Fault(checks.Reboot, "%s was killed and has not ended for %s", what, lasted)
		case x.NVIDIA && x.For >= p.Stuck.D():
			t.Fault(checks.Reboot, "%s has been stuck in the GPU driver for %s", what, lasted)
		case x.For >= p.Stuck.D():
			t.Watch("%s has been stuck in the kernel for %s", what, lasted)
		default:
			continue
		}
		evidence = append(evidence, fmt.Sprintf("pid=%d name=%q wait=%s nvidia=%t killed=%t for=%s", x.PID, x.Name, x.Wait, x.NVIDIA, x.Killed, lasted))
	}
	return t.Finding(strings.Join(evidence, "\n"), "no process is stuck in the kernel")
}
