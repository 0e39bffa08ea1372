// Package slurm reads a Slurm cluster and changes it through scontrol, squeue and scancel, as an administrator would.
//
// Every call is a child process in a process group of its own with a deadline, never a shell. Slurm has no
// compare-and-set: each change therefore reads the node or job again just before it, does nothing when what it expected
// no longer holds (*ChangedError), and does nothing when what it wants already stands. Debian's Slurm 22.05 has no --json,
// so nodes are parsed from key=value text; jobs come from squeue with a fixed format, which shows no field that a user
// can write. What scontrol reboot does on a real 22.05 is written down in package slurmtest.
package slurm

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// DefaultDeadline is how long one child may run: Slurm's own default MessageTimeout.
const DefaultDeadline = 10 * time.Second

// maxChildren bounds how many children run at once, so that assay never becomes slurmctld's load.
const maxChildren = 4

// Config says how to reach Slurm. The zero value finds the programs on PATH and the cluster as they do.
type Config struct {
	Scontrol, Squeue string        // program names or paths
	Scancel          string        // default: beside Scontrol
	Deadline         time.Duration // of each child; default DefaultDeadline
	Env              []string      // added to the children's small environment, such as SLURM_CONF=…
	Logger           *slog.Logger  // default: discard

	// Fence is called right before each child that changes something. Its error stops the change: a leader that was
	// deposed starts nothing more.
	Fence func() error
	// Run starts the children; default Exec. Tests put faults and kills here.
	Run Runner
}

// A Client reads and changes one cluster. It is safe for concurrent use.
type Client struct {
	cfg      Config
	slots    chan struct{}
	launcher []string // what each child's command line starts with
}

// New returns a Client. It starts nothing.
func New(cfg Config) *Client {
	if cfg.Scontrol == "" {
		cfg.Scontrol = "scontrol"
	}
	if cfg.Squeue == "" {
		cfg.Squeue = "squeue"
	}
	if cfg.Scancel == "" {
		cfg.Scancel = "scancel"
		if dir := filepath.Dir(cfg.Scontrol); dir != "." {
			cfg.Scancel = filepath.Join(dir, "scancel")
		}
	}
	if cfg.Deadline <= 0 {
		cfg.Deadline = DefaultDeadline
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Fence == nil {
		cfg.Fence = func() error { return nil }
	}
	if cfg.Run == nil {
		cfg.Run = Exec
	}
	c := &Client{cfg: cfg, slots: make(chan struct{}, maxChildren)}
	// coreutils' timeout holds the deadline even while this process is stopped or its machine's clock jumps: a leader that
	// was paused must not leave a child that changes Slurm later than the next leader waits for.
	if path, err := exec.LookPath("timeout"); err == nil {
		c.launcher = []string{path, "--signal=KILL", strconv.FormatFloat(cfg.Deadline.Seconds(), 'f', 3, 64)}
	}
	return c
}

// Deadline is how long a child may still run after its leader was deposed. The next leader waits this long.
func (c *Client) Deadline() time.Duration { return c.cfg.Deadline }

// environ is the children's whole environment: what changes their output, such as SQUEUE_FORMAT or SLURM_TIME_FORMAT,
// stays out, and times are UTC so that no hour is there twice.
func (c *Client) environ() []string {
	env := []string{"LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=standard"}
	for _, name := range []string{"PATH", "HOME", "SLURM_CONF"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, c.cfg.Env...)
}
