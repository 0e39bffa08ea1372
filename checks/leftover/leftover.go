// Package leftover judges whether a job that has ended left processes on its GPUs.
//
// They hold memory that the next job is counting on, and one that does not go away is often stuck in the driver (Slurm's
// "Kill task failed": lyulyul/shine-cluster #166). What was there before the job began, such as a daemon of the site, is not
// the job's.
package leftover

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// ID is the check's catalog id.
const ID = "leftover"

// A Reading is the compute processes on one GPU. Source: nvmlDeviceGetComputeRunningProcesses.
type Reading struct {
	Have      checks.Availability `json:"have"`
	Err       string              `json:"err,omitempty"`
	Processes []Process           `json:"processes,omitempty"`
}

// A Process is one that computes on a GPU.
type Process struct {
	PID   int    `json:"pid"`
	Bytes uint64 `json:"bytes,omitempty"` // of GPU memory; 0 where the driver does not tell
}

// PIDs are the processes' numbers, ascending.
func (r Reading) PIDs() []int {
	var out []int
	for _, p := range r.Processes {
		out = append(out, p.PID)
	}
	slices.Sort(out)
	return out
}

// Judge turns what is on a GPU after its job has ended into a finding. before are the processes that were on it when the job
// began; nil means that it is not known, an empty list that there was none. It does no I/O. The fault is soft: the GPU may
// be well.
func Judge(gpu checks.GPU, r Reading, before []int) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
	switch {
	case r.Have == checks.NotSupported:
		f.Verdict, f.Reason = checks.NotApplicable, "this GPU does not tell its processes"
		return f
	case r.Have != checks.Read:
		f.Reason = "processes not read"
		if r.Err != "" {
			f.Reason += ": " + r.Err
		}
		return f
	case len(r.Processes) == 0:
		f.Verdict, f.Reason = checks.Pass, "no process is left"
		return f
	case before == nil:
		f.Reason = "which processes were there before the job is not known"
		return f
	}
	var left []string
	for _, p := range r.Processes {
		if slices.Contains(before, p.PID) {
			continue
		}
		text := fmt.Sprint(p.PID)
		if p.Bytes > 0 {
			text += fmt.Sprintf(" with %d MiB", p.Bytes>>20)
		}
		left = append(left, text)
	}
	if len(left) == 0 {
		f.Verdict, f.Reason = checks.Pass, "no process of the job is left"
		return f
	}
	f.Verdict, f.Action, f.Count = checks.Fail, checks.Drain, len(left)
	f.Reason = "left by the job: process " + strings.Join(left, ", ")
	return f
}
