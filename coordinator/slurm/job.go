package slurm

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// A Job is one job, or the waiting tasks of one array, as squeue shows it. No field holds text that a user can write.
type Job struct {
	ID       string   // the plain number that SLURM_JOB_ID has, also for array tasks
	State    string   // RUNNING, PENDING, COMPLETING, …
	Reason   string   // why it waits, as squeue says: "launch failed requeued held", "JobHeldAdmin", "Resources"
	Nodes    []string // it is on; empty while it waits
	NumNodes int
	Priority int64 // 0: held
	Restarts int
	Requeue  bool // may be requeued
	User     string
}

// OnNodes reports whether the job takes its nodes: it runs, starts, is suspended or is ending there.
func (j Job) OnNodes() bool { return len(j.Nodes) > 0 && j.State != "PENDING" }

// HeldByLaunchFailure reports whether Slurm itself holds the job since a prolog failed. Priority 0, at least one restart
// and this reason together are the signature; a hold by a person reads JobHeldAdmin or JobHeldUser and is never this.
func (j Job) HeldByLaunchFailure() bool {
	return j.State == "PENDING" && j.Priority == 0 && j.Restarts >= 1 &&
		strings.EqualFold(strings.ReplaceAll(j.Reason, "_", " "), "launch failed requeued held")
}

// jobFormat is squeue's --Format: fields without a width are not cut, and the reason, the only one with spaces, is last.
const jobFormat = "JobID:|,State:|,NodeList:|,NumNodes:|,PriorityLong:|,RestartCnt:|,Requeue:|,UserName:|,Reason:|"

// Jobs reads all jobs that wait, run or are ending, with one child.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	out, err := c.read(ctx, "jobs", c.cfg.Squeue, "--all", "--noheader", "--Format="+jobFormat)
	if err != nil {
		return nil, err
	}
	return ParseJobs(out)
}

// job reads one job again. ok is false when Slurm has forgotten it or it has ended.
func (c *Client) job(ctx context.Context, verb, id string) (j Job, ok bool, err error) {
	if !jobID(id) {
		return Job{}, false, &RefusedError{Verb: verb, Target: clip(id), Msg: "not a job number", Advice: "use the number squeue shows as JOBID"}
	}
	out, err := c.read(ctx, "jobs", c.cfg.Squeue, "--all", "--noheader", "--jobs="+id, "--Format="+jobFormat)
	if err != nil {
		if strings.Contains(err.Error(), "Invalid job id specified") {
			return Job{}, false, nil
		}
		return Job{}, false, err
	}
	jobs, err := ParseJobs(out)
	if err != nil {
		return Job{}, false, err
	}
	for _, j := range jobs {
		if j.ID == id {
			return j, true, nil
		}
	}
	return Job{}, false, nil
}

func jobID(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil && s[0] != '+'
}

// ParseJobs reads squeue's output in the format above.
func ParseJobs(out string) ([]Job, error) {
	var jobs []Job
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		f := strings.SplitN(line, "|", 9)
		if len(f) != 9 {
			return nil, &FormatError{Verb: "jobs", Line: line, Msg: fmt.Sprintf("%d fields, want 9", len(f))}
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		j := Job{ID: f[0], State: f[1], Requeue: f[6] == "1", User: f[7], Reason: strings.TrimSuffix(f[8], "|")}
		if !jobID(j.ID) || j.State == "" {
			return nil, &FormatError{Verb: "jobs", Line: line, Msg: "no job number or no state"}
		}
		var err error
		if j.Nodes, err = hostlist.Expand(f[2]); err != nil {
			return nil, &FormatError{Verb: "jobs", Line: line, Msg: err.Error()}
		}
		if j.NumNodes, err = lowest(f[3]); err != nil {
			return nil, &FormatError{Verb: "jobs", Line: line, Msg: "node count: " + err.Error()}
		}
		if j.Priority, err = strconv.ParseInt(f[4], 10, 64); err != nil {
			return nil, &FormatError{Verb: "jobs", Line: line, Msg: "priority: " + err.Error()}
		}
		if j.Restarts, err = strconv.Atoi(f[5]); err != nil {
			return nil, &FormatError{Verb: "jobs", Line: line, Msg: "restarts: " + err.Error()}
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// lowest reads a node count, which is "4" or, for a job that takes a range, "4-8".
func lowest(s string) (int, error) {
	s, _, _ = strings.Cut(s, "-")
	return strconv.Atoi(s)
}
