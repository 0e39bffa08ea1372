package slurm

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestErrorsSayWhoseFault(t *testing.T) {
	down := "scontrol: error: Unable to contact slurm controller (connect failure)"
	for _, tt := range []struct {
		name, script string
		unavailable  bool
	}{
		{"slurmctld away", "echo '" + down + "' >&2; exit 1", true},
		{"slurmctld busy", "echo 'slurm_update error: Socket timed out on send/recv operation' >&2; exit 1", true},
		{"killed", "kill -9 $$", true},
		{"killed by its deadline's keeper", "exit 137", true},
		{"not allowed", "echo 'slurm_update error: Access/permission denied' >&2; exit 1", false},
		{"without a word", "exit 1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, err := Exec(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", tt.script}})
			err = failure(t.Context(), Command{Verb: "drain", Args: []string{"update", "nodename=gpu1"}}, stderr, err)
			var ue *UnavailableError
			if errors.As(err, &ue) != tt.unavailable || isRefused(err) == tt.unavailable {
				t.Fatalf("error %v", err)
			}
			if tt.unavailable && (ue.Hint() == "" || ue.Status() != 503) {
				t.Errorf("no hint or status in %v", err)
			}
			if !tt.unavailable && !strings.Contains(err.Error(), "drain gpu1") {
				t.Errorf("%q does not name the node", err)
			}
		})
	}
	var ue *UnavailableError
	if _, err := New(Config{Scontrol: "/nonexistent/scontrol"}).Nodes(t.Context()); !errors.As(err, &ue) && !isRefused(err) {
		t.Errorf("no scontrol: %v", err)
	}
}

// TestDeadline: a child that never ends is killed with all its own children, by us and, were we stopped, by timeout.
func TestDeadline(t *testing.T) {
	dir := t.TempDir()
	stuck := dir + "/scontrol"
	write(t, stuck, "#!/bin/sh\nsleep 61.375 &\nwait\n")
	start := time.Now()
	_, err := New(Config{Scontrol: stuck, Deadline: 300 * time.Millisecond}).Nodes(t.Context())
	var ue *UnavailableError
	if !errors.As(err, &ue) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("took %v", d)
	}
	gone(t, "61.375")

	// Nobody in this process watches this one: the keeper alone ends it.
	c := New(Config{Scontrol: stuck, Deadline: 300 * time.Millisecond})
	if len(c.launcher) == 0 {
		t.Fatal("no timeout program: a stopped leader's child could outlive its deadline")
	}
	cmd := exec.Command(c.launcher[0], append(c.launcher[1:], stuck)...)
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() == 0 {
		t.Errorf("the keeper let it end: %v", err)
	}
	gone(t, "61.375")
}

func TestContextEndsTheChild(t *testing.T) {
	stuck := t.TempDir() + "/scontrol"
	write(t, stuck, "#!/bin/sh\nexec sleep 62.125\n")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := New(Config{Scontrol: stuck}).Nodes(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	gone(t, "62.125")
}

// TestEnvironment: what the caller's environment says about formats and clusters does not reach the children.
func TestEnvironment(t *testing.T) {
	t.Setenv("SQUEUE_FORMAT", "%i")
	t.Setenv("SLURM_TIME_FORMAT", "relative")
	t.Setenv("SLURM_CLUSTERS", "other")
	t.Setenv("SLURM_CONF", "/etc/one.conf")
	env := strings.Join(New(Config{Env: []string{"SLURM_CONF=/etc/two.conf"}}).environ(), "\n")
	for _, bad := range []string{"SQUEUE_FORMAT", "relative", "SLURM_CLUSTERS"} {
		if strings.Contains(env, bad) {
			t.Errorf("%s in %s", bad, env)
		}
	}
	if !strings.Contains(env, "TZ=UTC") || !strings.HasSuffix(env, "SLURM_CONF=/etc/two.conf") {
		t.Errorf("environment %s", env)
	}
}

func TestScancelIsBesideScontrol(t *testing.T) {
	if c := New(Config{Scontrol: "/opt/slurm/bin/scontrol"}); c.cfg.Scancel != "/opt/slurm/bin/scancel" {
		t.Errorf("scancel is %s", c.cfg.Scancel)
	}
	if c := New(Config{}); c.cfg.Scancel != "scancel" || c.Deadline() != DefaultDeadline {
		t.Errorf("defaults: %+v", c.cfg)
	}
}
