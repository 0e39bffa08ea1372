package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRunnerFillsInAndRunsNoShell(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	r := runner{node: "gpu001", reset: "cp /dev/null " + out + "-{node}-{uuid}", reboot: "false"}
	if err := r.Reset(t.Context(), "GPU-a;touch x"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(out + "-gpu001-GPU-a;touch x"); err != nil {
		t.Fatalf("the UUID was not passed as it is: %v", err)
	}
	if err := r.Reboot(t.Context()); err == nil || !strings.Contains(err.Error(), "false: exit status 1") {
		t.Fatalf("a reboot command that fails: %v", err)
	}
	if err := (runner{}).Reboot(t.Context()); err == nil {
		t.Fatal("no command is configured, and it was run")
	}
}

func TestRunnerEndsACommandThatHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := (runner{reset: "sleep 60"}).Reset(ctx, "GPU-a"); err == nil || time.Since(start) > 5*time.Second {
		t.Fatalf("%v after %s", err, time.Since(start))
	}
}

func TestHolders(t *testing.T) {
	proc, dev := t.TempDir(), t.TempDir()
	for _, f := range []struct{ pid, comm, to string }{
		{"1", "systemd", "/dev/null"}, {"4242", "python3", dev + "/nvidia0"}, {"77", "nv-hostengine", dev + "/nvidiactl"}, {"self", "x", dev + "/nvidia0"},
	} {
		fds := filepath.Join(proc, f.pid, "fd")
		if err := os.MkdirAll(fds, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(f.to, filepath.Join(fds, "3")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, f.pid, "comm"), []byte(f.comm+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := runner{devices: dev + "/nvidia*", proc: proc}.Holders()
	if err != nil || strings.Join(got, ", ") != "pid 4242 (python3), pid 77 (nv-hostengine)" {
		t.Fatalf("%q, %v", got, err)
	}
	if got, err := (runner{proc: proc}).Holders(); err != nil || got != nil {
		t.Fatalf("simulated hardware has holders %q, %v", got, err)
	}
}
