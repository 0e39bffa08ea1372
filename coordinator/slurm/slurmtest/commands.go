package slurmtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/slurm"
)

// commandDeadline bounds each of the cluster's own commands.
const commandDeadline = 30 * time.Second

// Env is the environment of everything that talks to the cluster: small, and with the mark by which Close finds it.
func (c *Cluster) Env() []string {
	env := []string{"SLURM_CONF=" + c.Conf, mark + "=" + c.Dir, "HOME=/root", "LC_ALL=C", "TZ=UTC"}
	for _, k := range []string{"PATH"} {
		env = append(env, k+"="+os.Getenv(k)+":/usr/sbin:/sbin")
	}
	return env
}

// Client returns a client of the cluster; change may adjust its Config, and may be nil.
func (c *Cluster) Client(change func(*slurm.Config)) *slurm.Client {
	cfg := slurm.Config{Env: c.Env()}
	if change != nil {
		change(&cfg)
	}
	return slurm.New(cfg)
}

// Run runs one of Slurm's commands and returns its standard output. A failure fails the test.
func (c *Cluster) Run(name string, args ...string) string {
	c.t.Helper()
	out, err := c.Try(name, args...)
	c.must(err)
	return out
}

// Try is Run that returns the failure, with what the command wrote to standard error.
func (c *Cluster) Try(name string, args ...string) (string, error) { return c.pipe("", name, args...) }

func (c *Cluster) pipe(stdin, name string, args ...string) (string, error) {
	path, err := find(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir, cmd.Stdin = c.Env(), c.Dir, strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Submit submits a batch script and returns its job's number. Its output goes to Dir/out/JOB.
func (c *Cluster) Submit(script string, args ...string) string {
	c.t.Helper()
	if !strings.HasPrefix(script, "#!") {
		script = "#!/bin/sh\n" + script + "\n"
	}
	out, err := c.pipe(script, "sbatch", append([]string{"--parsable", "--output=" + c.path("out", "%j"), "--chdir=" + c.Dir}, args...)...)
	c.must(err)
	return strings.TrimSpace(out)
}

// Job is a job's state, and its reason if it waits: "RUNNING", "PENDING JobHeldAdmin".
func (c *Cluster) Job(id string) string {
	c.t.Helper()
	out := strings.TrimSpace(c.Run("squeue", "--noheader", "--states=all", "--jobs="+id, "--format=%T|%r"))
	state, reason, _ := strings.Cut(out, "|")
	if state == "PENDING" {
		return state + " " + reason
	}
	return state
}

// WaitJob waits until a job's Job text starts with want.
func (c *Cluster) WaitJob(id, want string, within time.Duration) {
	c.t.Helper()
	err := until(within, func() error {
		if got := c.Job(id); !strings.HasPrefix(got, want) {
			return fmt.Errorf("job %s is %s, not %s, after %v", id, got, want, within)
		}
		return nil
	})
	c.must(err)
}

// Node is a node as Slurm shows it now.
func (c *Cluster) Node(name string) slurm.Node {
	c.t.Helper()
	nodes, err := slurm.ParseNodes(c.Run("scontrol", "show", "node", "-o", name))
	c.must(err)
	if len(nodes) != 1 {
		c.t.Fatalf("slurmtest: %d nodes named %s", len(nodes), name)
	}
	return nodes[0]
}

// WaitNode waits until a node is as want says, and returns it.
func (c *Cluster) WaitNode(name, what string, within time.Duration, want func(slurm.Node) bool) slurm.Node {
	c.t.Helper()
	var n slurm.Node
	err := until(within, func() error {
		if n = c.Node(name); !want(n) {
			return fmt.Errorf("node %s is not %s after %v: %s %q", name, what, within, slurm.StateText(n), n.Reason)
		}
		return nil
	})
	c.must(err)
	return n
}

// SlurmctldLog is the controller's log so far.
func (c *Cluster) SlurmctldLog() string { return c.log("slurmctld") }

// SlurmdLog is a node's log so far.
func (c *Cluster) SlurmdLog(node string) string { return c.log("slurmd." + node) }

func (c *Cluster) log(name string) string {
	b, _ := os.ReadFile(c.path("log", name+".log")) // not there yet: empty
	return string(b)
}

// tails are the ends of the logs, for a failed test.
func (c *Cluster) tails() string {
	var b strings.Builder
	names := append([]string{"munged", "slurmctld"}, c.slurmdLogs()...)
	if c.opts.Accounting {
		names = append(names, "slurmdbd")
	}
	for _, name := range names {
		lines := strings.Split(strings.TrimSpace(c.log(name)), "\n")
		n := 8
		if name == "slurmctld" {
			n = 60
		}
		fmt.Fprintf(&b, "--- %s.log\n%s\n", name, strings.Join(lines[max(0, len(lines)-n):], "\n"))
	}
	return b.String()
}

func (c *Cluster) slurmdLogs() []string {
	out := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		out[i] = "slurmd." + n
	}
	return out
}
