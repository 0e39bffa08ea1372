// Package slurmtest runs a real Slurm on one host for tests: one munged, one slurmctld and any number of slurmd, each a
// node of its own, all under one temporary directory and on loopback. Nothing of the host's own Slurm or munge is used or
// touched. It needs root and Debian's slurm-wlm and munge.
//
// Every process carries the cluster's directory in its environment; Close ends those and no others.
//
// # What Slurm 22.05.8 does, seen here and held by tests
//
// A node's slurmd is told its name by -N. Prolog and Epilog get SLURMD_NODENAME and a small environment of their own,
// nothing of slurmd's and no PATH; HealthCheckProgram gets SLURMD_NODENAME only; RebootProgram inherits slurmd's whole
// environment, in which this package puts SLURMD_NODENAME. SLURM_JOB_GPUS is set in a prolog only where gres.conf names
// device files; character devices made here are enough.
//
// Plain `scontrol reboot NODE` of a drained node: IDLE+DRAIN+REBOOT_REQUESTED, within a second RebootProgram runs and the
// node is DOWN+DRAIN+REBOOT_ISSUED with " : reboot issued" behind our reason, which then is of that moment and SlurmUser's.
// slurmd is not stopped by any of this; that is RebootProgram's part. A slurmd started with -b reports its start as the
// boot: the node is IDLE+DRAIN at once, the reason keeps its suffix and the drain stays. Without -b the old boot time comes
// back and the node stays DOWN until ResumeTimeout.
//
// `state=resume` leaves IDLE+NOT_RESPONDING and no boot time until slurmctld's next ping, about a second. On a node that
// is not drained it is an error.
//
// A job requeued after a failed prolog waits AuthInfo's cred_expire before it may start again, 120 s by default, and
// `scontrol release` does not shorten that. This package sets 5 s.
//
// Without slurmctld every command tries for MessageTimeout less a second and then fails.
//
// A node that registers with fewer GPUs than configured is IDLE+DRAIN+INVALID_REG. 22.05.8 leaves a reason that is there;
// later releases replace it.
package slurmtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TB is the part of testing.TB that is used, so that a benchmark outside the testing package can bring its own.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(func())
}

var _ TB = testing.TB(nil)

// Options say what cluster to start. The zero value is eight nodes of eight GPUs under two leaf switches.
type Options struct {
	Nodes  int    // default 8
	GPUs   int    // in each node; default 8, negative for none
	Prefix string // node names are Prefix1 … PrefixN; default "gpu"
	Leaf   int    // nodes under each leaf switch; default 4, negative for no topology

	// Absolute paths of programs; empty: none.
	Prolog, Epilog, HealthCheckProgram string
	HealthCheckInterval                int // seconds; 0: only at slurmd's start, if there is a program

	// OnReboot is called in a goroutine of the cluster's when Slurm has run a node's RebootProgram. After it returns, slurmd
	// is started again with -b. It is the moment to give the node's simulated hardware a new boot id.
	OnReboot func(node string)
	// RebootProgram replaces all that: an absolute path, or "none".
	RebootProgram string

	// Accounting runs a slurmdbd over a MariaDB of its own: accounts, fair share, QOS. It takes some ten seconds more.
	Accounting bool
	Partitions []string // lines of slurm.conf in place of ours, which is one partition "gpu" of all nodes

	SchedulerParameters string                     // added to ours, such as "nohold_on_prolog_fail"
	Conf                map[string]string          // slurm.conf keys that replace or join ours; "" removes one
	Env                 func(node string) []string // added to a slurmd's environment
}

// A Cluster is a running Slurm.
type Cluster struct {
	Dir   string   // everything is below it
	Conf  string   // path of slurm.conf
	Nodes []string // node names in order

	t       TB
	opts    Options
	ports   []int // slurmctld's, then each node's
	daemons *daemons
	once    *sync.Once    // of Close
	stop    chan struct{} // ends the reboot watcher
	watcher chan struct{} // closed when it has ended
}

// Require skips a short run, and the test where Slurm's tools or root are missing. In CI, where they must not be, it fails instead.
func Require(t testing.TB) {
	t.Helper()
	missing := missing()
	switch {
	case testing.Short():
		t.Skip("starts servers")
	case missing == "":
	case os.Getenv("CI") != "":
		t.Fatalf("no real Slurm: %s; install slurm-wlm and munge", missing)
	default:
		t.Skipf("no real Slurm: %s; install slurm-wlm and munge", missing)
	}
}

func missing() string {
	if os.Getuid() != 0 {
		return "not root"
	}
	for _, tool := range []string{"munged", "slurmctld", "slurmd", "scontrol", "squeue", "sinfo", "sbatch", "scancel"} {
		if _, err := find(tool); err != nil {
			return err.Error()
		}
	}
	return ""
}

// find looks on PATH and where daemons are.
func find(tool string) (string, error) {
	if p, err := exec.LookPath(tool); err == nil {
		return p, nil
	}
	p := filepath.Join("/usr/sbin", tool)
	_, err := os.Stat(p)
	return p, err
}

// Start starts a cluster and waits until all its nodes are idle. It is closed when the test ends.
func Start(t TB, o Options) *Cluster {
	t.Helper()
	o = o.withDefaults()
	dir, err := os.MkdirTemp("/tmp", "slurm") // short: a socket's path has 107 bytes at most
	if err != nil {
		t.Fatalf("slurmtest: %v", err)
	}
	c := &Cluster{Dir: dir, Conf: filepath.Join(dir, "slurm.conf"), t: t, opts: o,
		daemons: &daemons{m: map[string]*daemon{}}, once: new(sync.Once), stop: make(chan struct{}), watcher: make(chan struct{})}
	for i := range o.Nodes {
		c.Nodes = append(c.Nodes, fmt.Sprintf("%s%d", o.Prefix, i+1))
	}
	go c.watchReboots()
	t.Cleanup(c.Close)
	if err := c.start(); err != nil {
		t.Fatalf("slurmtest: %v\n%s", err, c.tails())
	}
	return c
}

func (o Options) withDefaults() Options {
	set := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
		*v = max(*v, 0)
	}
	set(&o.Nodes, 8)
	set(&o.GPUs, 8)
	set(&o.Leaf, 4)
	if o.Prefix == "" {
		o.Prefix = "gpu"
	}
	return o
}

func (c *Cluster) start() error {
	var err error
	if c.ports, err = freePorts(1 + c.opts.Nodes + 2); err != nil { // the last two are for accounting
		return err
	}
	if err := c.layout(); err != nil {
		return err
	}
	if err := c.daemons.start(c, "munged", c.mungedArgs(), nil); err != nil {
		return err
	}
	if err := until(10*time.Second, func() error { _, err := os.Stat(c.path("munge.sock")); return err }); err != nil {
		return fmt.Errorf("munged made no socket: %w", err)
	}
	if c.opts.Accounting {
		if err := c.startAccounting(); err != nil {
			return err
		}
	}
	if err := c.startController(); err != nil {
		return err
	}
	for _, n := range c.Nodes {
		if err := c.startSlurmd(n); err != nil {
			return err
		}
	}
	return until(30*time.Second, c.allIdle)
}

func (c *Cluster) allIdle() error {
	out, err := c.Try("sinfo", "--noheader", "--states=idle", "--format=%D")
	if err != nil {
		return err
	}
	if strings.TrimSpace(out) != fmt.Sprint(c.opts.Nodes) {
		all, _ := c.Try("sinfo", "-N", "--long")
		return fmt.Errorf("not all nodes are idle:\n%s", all)
	}
	return nil
}

// With is the cluster for a subtest: what fails there is the subtest's failure.
func (c *Cluster) With(t TB) *Cluster {
	sub := *c
	sub.t = t
	return &sub
}

// Close stops everything and removes the directory. It may be called more than once.
func (c *Cluster) Close() {
	c.once.Do(func() {
		close(c.stop)
		<-c.watcher
		if c.t.Failed() {
			c.t.Logf("%s", c.tails())
		}
		c.daemons.stopAll(c)
		c.sweep()
		if err := os.RemoveAll(c.Dir); err != nil {
			c.t.Logf("slurmtest: %v", err)
		}
	})
}

func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.Dir}, parts...)...)
}

// until tries f every 30 ms until it succeeds or d has passed, and returns its last error.
func until(d time.Duration, f func() error) error {
	deadline := time.Now().Add(d)
	for {
		err := f()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(30 * time.Millisecond)
	}
}
