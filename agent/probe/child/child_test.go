package child

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/tether"
)

// TestMain is the helper too: with arguments of its own it sets limits and becomes another program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "become" {
		fmt.Fprintln(os.Stderr, Become(os.Args[2:]))
		os.Exit(125)
	}
	os.Exit(m.Run())
}

func sh(script string) Spec {
	return Spec{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Timeout: 10 * time.Second, Grace: time.Second, Output: 1 << 16}
}

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Spec)
		script string
		want   Outcome
	}{
		{"well", nil, "echo out; echo err >&2", Outcome{Stdout: []byte("out\n"), Stderr: "err\n"}},
		{"an exit status", nil, "exit 3", Outcome{Exit: 3}},
		{"its environment is what it is given", func(s *Spec) { s.Env = append(s.Env, "A=b c") }, "echo $A-$HOME; pwd", Outcome{Stdout: []byte("b c-\n/\n")}},
		{"too slow", func(s *Spec) { s.Timeout = 100 * time.Millisecond }, "echo begun; exec sleep 20", Outcome{TimedOut: true, Exit: -1, Stdout: []byte("begun\n")}},
		{"too slow, and says goodbye", func(s *Spec) { s.Timeout = 300 * time.Millisecond }, "trap 'echo bye; exit 7' TERM; sleep 20 & wait", Outcome{TimedOut: true, Exit: 7, Stdout: []byte("bye\n")}},
		{"too slow, and does not listen", func(s *Spec) { s.Timeout, s.Grace = 100*time.Millisecond, 100*time.Millisecond }, "trap '' TERM; while :; do sleep 1; done", Outcome{TimedOut: true, Exit: -1}},
		{"too much output", func(s *Spec) { s.Output = 4 }, "echo 12345; exec sleep 20", Outcome{Cut: true, Exit: -1, Stdout: []byte("1234")}},
		{"as much output as may be", func(s *Spec) { s.Output = 6 }, "echo 12345", Outcome{Stdout: []byte("12345\n")}},
		{"a signal", nil, "kill -SEGV $$", Outcome{Signal: syscall.SIGSEGV, Exit: -1}},
		{"no such program", func(s *Spec) { s.Argv = []string{"/no/such/program"} }, "", Outcome{Err: "/no/such/program: no such file or directory", Missing: true, Exit: -1}},
		{"no such user", func(s *Spec) { s.User = "nosuchuser" }, "", Outcome{Err: "run as nosuchuser: no such user", Exit: -1}},
		{"no command", func(s *Spec) { s.Argv = nil }, "", Outcome{Err: "no command", Exit: -1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sh(tt.script)
			if tt.change != nil {
				tt.change(&s)
			}
			start := time.Now()
			got := Run(context.Background(), s)
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func TestTheContextEndsARun(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if o := Run(ctx, sh("exec sleep 20")); !o.TimedOut || !o.Broken {
		t.Errorf("%+v", o)
	}
}

// ended waits for a process to have ended.
func ended(t *testing.T, pid int) {
	t.Helper()
	for range 100 {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d is there still", pid)
}

// What the program leaves behind in its group is ended with it, whether it ended by itself or not.
func TestNothingIsLeftBehind(t *testing.T) {
	for name, script := range map[string]string{"ended by itself": "sleep 60 & echo $!", "timed out": "sleep 60 & echo $!; wait"} {
		t.Run(name, func(t *testing.T) {
			s := sh(script)
			s.Timeout = 300 * time.Millisecond
			o := Run(context.Background(), s)
			pid, err := strconv.Atoi(strings.TrimSpace(string(o.Stdout)))
			if err != nil {
				t.Fatalf("%+v", o)
			}
			ended(t, pid)
		})
	}
}

func limited(t *testing.T, s Spec) Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.Limits, s.Helper = &Limits{Memory: 1 << 30, Files: 64, FileSize: 1 << 20, CPU: 9}, []string{exe, "become"}
	return s
}

// A process that has gone to a session of its own, and whose parent has ended, is ended all the same.
func TestNoSessionOfItsOwnOutlivesARun(t *testing.T) {
	const daemon = "setsid sh -c 'setsid sleep 60 & echo $! >DIR/pid' & while ! [ -s DIR/pid ]; do sleep 0.05; done; "
	for _, tt := range []struct {
		name, script string
		timeout      time.Duration
		want         Outcome
	}{
		{"ended by itself", "exit 3", 20 * time.Second, Outcome{Exit: 3}},
		{"ended by a signal", "kill -SEGV $$", 20 * time.Second, Outcome{Signal: syscall.SIGSEGV, Exit: -1}},
		{"timed out, and does not listen", "trap '' TERM; while :; do sleep 1; done", 2 * time.Second, Outcome{TimedOut: true, Exit: -1}},
		{"timed out, and says goodbye", "trap 'exit 7' TERM; sleep 20 & wait", 2 * time.Second, Outcome{TimedOut: true, Exit: 7}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s := limited(t, sh(strings.ReplaceAll(daemon, "DIR", dir)+tt.script))
			s.Timeout, s.Grace = tt.timeout, time.Second
			o := Run(context.Background(), s)
			if fmt.Sprintf("%+v", o) != fmt.Sprintf("%+v", tt.want) {
				t.Errorf("got  %+v\nwant %+v", o, tt.want)
			}
			b, err := os.ReadFile(filepath.Join(dir, "pid"))
			if err != nil {
				t.Skipf("it did not come so far: %v", err) // on a machine that is very slow
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
			if err != nil {
				t.Fatal(err)
			}
			if _, alive := tether.Parent(pid); alive {
				t.Errorf("process %d is there still", pid)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	s := limited(t, sh("ulimit -v; ulimit -n; ulimit -f; ulimit -t; ulimit -c; grep NoNewPrivs /proc/self/status"))
	o := Run(context.Background(), s)
	if got, want := strings.Join(strings.Fields(string(o.Stdout)), " "), "1048576 64 2048 9 0 NoNewPrivs: 1"; got != want || o.Exit != 0 {
		t.Errorf("got %q, %+v", got, o)
	}
	for _, bad := range [][]string{nil, {"1", "2", "3", "4", "--"}, {"1", "2", "3", "x", "--", "/bin/true"}, {"1", "2", "3", "4", "/bin/true", "x"}} {
		if err := Become(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

func TestAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	s := sh("id -un; id -u")
	s.User = "nobody"
	if o := Run(context.Background(), s); !strings.HasPrefix(string(o.Stdout), "nobody\n") || o.Exit != 0 {
		t.Errorf("%+v", o)
	}
}

func TestTrusted(t *testing.T) {
	if err := Trusted("/bin/sh"); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "check")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Trusted(file); err != nil {
		t.Errorf("a file of our own: %v", err)
	}
	for name, tt := range map[string]struct {
		do   func() error
		want string
	}{
		"a file that all may write":      {func() error { return os.Chmod(file, 0o757) }, "can be changed by others (mode 0757)"},
		"a file that nobody may execute": {func() error { return os.Chmod(file, 0o644) }, "no executable file"},
		"a folder that all may write":    {func() error { return os.Chmod(dir, 0o777) }, "can be changed by others"},
		"a file that is not there":       {func() error { return os.Remove(file) }, "no such file"},
		"a file of somebody else's":      {func() error { return os.Chown(file, 65534, 65534) }, "belongs to user 65534"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := tt.do(); err != nil {
				t.Skip(err)
			}
			defer os.Remove(file)
			if err := Trusted(file); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
