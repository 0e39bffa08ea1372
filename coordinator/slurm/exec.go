package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/coordinator/killpoint"
)

// maxOutput bounds what a child may print: 100,000 nodes of 1 KiB each, with room.
const maxOutput = 256 << 20

// A Command is one child to run.
type Command struct {
	Verb    string   // what it is for: nodes jobs topology config, or a change: drain reason resume reboot requeue cancel release
	Mutates bool     // it changes Slurm
	Path    string   // program
	Args    []string // without the program's name
	Env     []string // all of its environment
	launch  []string // what to put before Path
}

// Verbs lists the verbs of every child that changes Slurm, for tests that must cover them all.
var Verbs = []string{"drain", "reason", "resume", "reboot", "requeue", "cancel", "release"}

// A Runner runs a command to its end and returns what it printed. Its error is an *exec.ExitError for a non-zero exit.
type Runner func(ctx context.Context, cmd Command) (stdout, stderr []byte, err error)

// Exec is the Runner that starts a real child, in a process group of its own that is killed when ctx ends.
func Exec(ctx context.Context, c Command) (stdout, stderr []byte, err error) {
	argv := append(append(append([]string(nil), c.launch...), c.Path), c.Args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs limited
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, c.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a child in D state must not hold us
	err = cmd.Run()
	if out.over {
		err = fmt.Errorf("more than %d MiB of output", maxOutput>>20)
	}
	return out.Bytes(), errs.Bytes(), err
}

// limited keeps the first maxOutput bytes.
type limited struct {
	bytes.Buffer
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxOutput {
		l.over = true
		return 0, errors.New("output limit")
	}
	return l.Buffer.Write(p)
}

// read runs a child that changes nothing.
func (c *Client) read(ctx context.Context, verb, path string, args ...string) (string, error) {
	return c.run(ctx, Command{Verb: verb, Path: path, Args: args})
}

// change runs a child that changes Slurm, if the fence lets it.
func (c *Client) change(ctx context.Context, verb, path string, args ...string) error {
	_, err := c.run(ctx, Command{Verb: verb, Path: path, Args: args, Mutates: true})
	return err
}

func (c *Client) run(ctx context.Context, cmd Command) (string, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return "", fmt.Errorf("slurm %s: %w", cmd.Verb, context.Cause(ctx))
	}
	cmd.Env, cmd.launch = c.environ(), c.launcher
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Deadline, &UnavailableError{Verb: cmd.Verb, Msg: fmt.Sprintf("no answer within %v", c.cfg.Deadline)})
	defer cancel()
	if cmd.Mutates {
		killpoint.Here("slurm/" + cmd.Verb + "/before")
		if err := c.cfg.Fence(); err != nil {
			return "", fmt.Errorf("slurm %s not started: %w", cmd.Verb, err)
		}
	}
	start := time.Now()
	out, errs, err := c.cfg.Run(ctx, cmd)
	if cmd.Mutates {
		killpoint.Here("slurm/" + cmd.Verb + "/after")
		c.cfg.Logger.Info("slurm changed", "verb", cmd.Verb, "args", strings.Join(cmd.Args, " "), "duration_seconds", time.Since(start).Seconds(), "err", err)
	}
	if err == nil {
		return string(out), nil
	}
	return string(out), failure(ctx, cmd, errs, err)
}

// failure turns a child's end into an error that says whose fault it was.
func failure(ctx context.Context, cmd Command, stderr []byte, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("slurm %s: %w", cmd.Verb, cause)
	}
	msg := strings.Join(strings.Fields(string(stderr)), " ")
	if len(msg) > 400 {
		msg = msg[:400] + "…"
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return &UnavailableError{Verb: cmd.Verb, Msg: cmd.Path, Err: err}
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && (status.Signaled() || status.ExitStatus() == 128+int(syscall.SIGKILL)) {
		return &UnavailableError{Verb: cmd.Verb, Msg: "killed at its deadline", Err: err}
	}
	for _, s := range unavailable {
		if strings.Contains(msg, s) {
			return &UnavailableError{Verb: cmd.Verb, Msg: msg, Err: err}
		}
	}
	if msg == "" {
		msg = "no message"
	}
	return &RefusedError{Verb: cmd.Verb, Target: target(cmd), Msg: msg, Err: err}
}

// unavailable are the texts of slurm_strerror for a slurmctld that cannot be reached, does not answer, or is a standby.
var unavailable = []string{
	"Unable to contact slurm controller", "Socket timed out", "Connection refused", "Zero Bytes were transmitted", "Transport endpoint is not connected",
	"Slurm backup controller in standby mode", "Slurm temporarily unable", "Unexpected message received", "Communication connection failure",
	"Protocol authentication error", "Munge encode failed", "Resource temporarily unavailable",
}

func target(cmd Command) string {
	for _, a := range cmd.Args {
		if v, ok := strings.CutPrefix(a, "nodename="); ok {
			return v
		}
	}
	if len(cmd.Args) > 0 {
		return cmd.Args[len(cmd.Args)-1]
	}
	return cmd.Path
}
