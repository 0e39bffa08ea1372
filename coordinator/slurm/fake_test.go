package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// fake is a small slurmctld behind a Runner: it keeps nodes and jobs and does to them what scontrol asks, with Slurm's
// rules where they matter here.
type fake struct {
	nodes   map[string]*Node
	jobs    map[string]*Job
	conf    string
	now     time.Time
	user    string
	changes []string                       // command lines of what was changed
	reads   int                            // children that changed nothing
	before  func(n int, cmd Command) error // called before the nth child; its error is the child's
	after   func(cmd Command) error        // called when the child has done its work
}

func newFake() *fake {
	f := &fake{nodes: map[string]*Node{}, jobs: map[string]*Job{}, user: "slurm", now: utc("2026-03-02T10:00:00"),
		conf: "SLURM_VERSION = 22.05.8\nResumeTimeout = 1800 sec\nRebootProgram = /sbin/reboot\n"}
	for i := range 8 {
		name := fmt.Sprintf("gpu%d", i+1)
		f.nodes[name] = &Node{Name: name, State: "IDLE"}
	}
	return f
}

func (f *fake) client(change func(*Config)) *Client {
	cfg := Config{Scontrol: "scontrol", Run: f.run}
	if change != nil {
		change(&cfg)
	}
	return New(cfg)
}

// drain sets a node drained as a person or Slurm would.
func (f *fake) drain(node, reason, user string) {
	n := f.nodes[node]
	n.Flags, n.Reason, n.ReasonUser, n.ReasonTime = []string{FlagDrain}, reason, user, f.now
}

func (f *fake) run(_ context.Context, cmd Command) (stdout, stderr []byte, err error) {
	n := f.reads + len(f.changes)
	if f.before != nil {
		if err := f.before(n, cmd); err != nil {
			return nil, nil, err
		}
	}
	var out, errs string
	if cmd.Mutates {
		f.changes = append(f.changes, strings.Join(append([]string{cmd.Path}, cmd.Args...), " "))
		errs = f.change(cmd)
	} else {
		f.reads++
		out, errs = f.show(cmd)
	}
	if f.after != nil {
		if err := f.after(cmd); err != nil {
			return nil, nil, err
		}
	}
	if errs != "" {
		return []byte(out), []byte(errs), exited()
	}
	return []byte(out), nil, nil
}

// exited is the error of a child that exits 1.
func exited() error {
	var ee *exec.ExitError
	if err := exec.Command("false").Run(); errors.As(err, &ee) {
		return ee
	}
	panic("false did not exit 1")
}

func (f *fake) show(cmd Command) (out, errs string) {
	var b strings.Builder
	switch cmd.Verb {
	case "config":
		return f.conf, ""
	case "topology":
		return "SwitchName=leaf1 Level=0 Nodes=gpu[1-8]\n", ""
	case "jobs":
		only := ""
		for _, a := range cmd.Args {
			if v, ok := strings.CutPrefix(a, "--jobs="); ok {
				only = v
			}
		}
		if only != "" && f.jobs[only] == nil {
			return "", "slurm_load_jobs error: Invalid job id specified"
		}
		for id, j := range f.jobs {
			if only == "" || id == only {
				fmt.Fprintf(&b, "%s|%s|%s|%d|%d|%d|%d|%s|%s|\n", j.ID, j.State, hostlist.Compress(j.Nodes), j.NumNodes, j.Priority, j.Restarts, map[bool]int{true: 1}[j.Requeue], j.User, j.Reason)
			}
		}
		return b.String(), ""
	}
	names := slices.Sorted(maps.Keys(f.nodes))
	if last := cmd.Args[len(cmd.Args)-1]; last != "--all" {
		names, _ = hostlist.Expand(last)
	}
	for _, name := range names {
		n := f.nodes[name]
		if n == nil {
			fmt.Fprintf(&b, "Node %s not found\n", name)
			errs = "Node " + name + " not found"
			continue
		}
		fmt.Fprintf(&b, "NodeName=%s CPUAlloc=%d State=%s Partitions=gpu", n.Name, n.CPUAlloc, StateText(*n))
		if !n.BootTime.IsZero() {
			fmt.Fprintf(&b, " BootTime=%s", n.BootTime.UTC().Format("2006-01-02T15:04:05"))
		}
		if n.Reason != "" {
			fmt.Fprintf(&b, " Reason=%s [%s@%s]", n.Reason, n.ReasonUser, n.ReasonTime.Format("2006-01-02T15:04:05"))
		}
		b.WriteByte('\n')
	}
	return b.String(), errs
}

func (f *fake) change(cmd Command) (errs string) {
	args := map[string]string{}
	for _, a := range cmd.Args {
		k, v, _ := strings.Cut(a, "=")
		args[k] = v
	}
	last := cmd.Args[len(cmd.Args)-1]
	switch cmd.Verb {
	case "reboot":
		f.nodes[last].Flags = append(f.nodes[last].Flags, FlagRebootRequested)
	case "requeue":
		j := f.jobs[last]
		j.State, j.Nodes, j.Restarts = "PENDING", nil, j.Restarts+1
	case "cancel":
		delete(f.jobs, last)
	case "release":
		f.jobs[last].Priority, f.jobs[last].Reason = 1, "None"
	default:
		names, err := hostlist.Expand(args["nodename"])
		if err != nil {
			return err.Error()
		}
		for _, name := range names {
			n := f.nodes[name]
			if n == nil {
				return "slurm_update error: Invalid node name specified" // those before it are done
			}
			if r, ok := args["reason"]; ok {
				n.Reason, n.ReasonUser, n.ReasonTime = r, f.user, f.now
			}
			switch args["state"] {
			case "drain":
				if !n.Drained() {
					n.Flags = append(n.Flags, FlagDrain)
				}
			case "resume":
				if !n.Drained() && n.State != "DOWN" {
					return "slurm_update error: Invalid node state specified"
				}
				n.State, n.Flags, n.Reason, n.ReasonUser, n.ReasonTime = "IDLE", nil, "", "", time.Time{}
			}
		}
	}
	return ""
}
