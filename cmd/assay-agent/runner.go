package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A runner carries out resets and reboots by the configured commands.
type runner struct {
	node          string
	reset, reboot string
	report        string // writes the driver's own report to {file}; empty: none is wanted
	devices       string // glob of the GPUs' device files; empty: there are none, as on simulated hardware
	proc          string
}

// Reset runs the reset command for one GPU.
func (r runner) Reset(ctx context.Context, uuid string) error {
	return r.run(ctx, r.reset, map[string]string{"{uuid}": uuid, "{node}": r.node})
}

// Reboot runs the reboot command.
func (r runner) Reboot(ctx context.Context) error {
	return r.run(ctx, r.reboot, map[string]string{"{node}": r.node})
}

// BugReport runs the report command with a file of dir, which the command may add .gz to.
func (r runner) BugReport(ctx context.Context, dir string) (string, error) {
	words := strings.Fields(r.report)
	if len(words) == 0 {
		return "", nil
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return "", nil // the driver's package is not here, or has none
	}
	file := filepath.Join(dir, "nvidia-bug-report.log")
	if err := errors.Join(gone(file), gone(file+".gz")); err != nil {
		return "", err
	}
	if err := r.run(ctx, r.report, map[string]string{"{file}": file, "{node}": r.node}); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return "", cause
		}
		return "", err
	}
	for _, f := range []string{file + ".gz", file} {
		if _, err := os.Stat(f); err == nil {
			return f, nil
		}
	}
	return "", fmt.Errorf("%s: it wrote neither %s nor %s.gz", r.report, file, file)
}

// gone removes a file that may not be there.
func gone(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// run runs a command of words; there is no shell, so nothing in a word is special.
func (r runner) run(ctx context.Context, command string, fill map[string]string) error {
	words := strings.Fields(command)
	if len(words) == 0 {
		return errors.New("no command is configured")
	}
	for i := range words {
		for k, v := range fill {
			words[i] = strings.ReplaceAll(words[i], k, v)
		}
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, lastLine(out))
	}
	return nil
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// Holders names the processes that have a GPU's device file open, as "pid 1234 (python3)". The control files that every
// CUDA process and the persistence daemon hold are GPU files too: nothing may hold them during a reset.
func (r runner) Holders() ([]string, error) {
	if r.devices == "" {
		return nil, nil
	}
	procs, err := os.ReadDir(r.proc)
	if err != nil {
		return nil, err
	}
	var holders []string
	for _, p := range procs {
		if strings.Trim(p.Name(), "0123456789") != "" {
			continue
		}
		fds, err := filepath.Glob(filepath.Join(r.proc, p.Name(), "fd", "*")) // a process that has ended gives none
		if err != nil {
			return nil, err
		}
		holds := slices.ContainsFunc(fds, func(fd string) bool {
			to, err := os.Readlink(fd)
			if err != nil {
				return false // closed meanwhile
			}
			ok, err := filepath.Match(r.devices, to)
			return ok && err == nil
		})
		if holds {
			name, _ := os.ReadFile(filepath.Join(r.proc, p.Name(), "comm")) // the pid alone will do
			holders = append(holders, fmt.Sprintf("pid %s (%s)", p.Name(), strings.TrimSpace(string(name))))
		}
	}
	return holders, nil
}
