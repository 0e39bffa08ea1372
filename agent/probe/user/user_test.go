package user

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/probe/child"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "become" {
		fmt.Fprintln(os.Stderr, child.Become(os.Args[2:]))
		os.Exit(125)
	}
	os.Exit(m.Run())
}

// newRunner gives a runner with a clock of its own and a policy whose check "count" says how often it has run.
func newRunner(t *testing.T) (*Runner, *time.Time, policy.Policy) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	r := New([]string{exe, "become"})
	r.now = func() time.Time { return now }
	dir := t.TempDir()
	file := filepath.Join(dir, "count")
	script := fmt.Sprintf("#!/bin/sh\necho x >>%s/n\necho run $(wc -l <%s/n) of $ASSAY_CHECK on $ASSAY_NODE in $ASSAY_TIMEOUT s, A=$A, HOME=$HOME\n", dir, dir)
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	p := policy.Default()
	p.UserChecks = map[string]policy.UserCheck{"count": {Command: []string{file}, Every: policy.Duration(time.Minute), Env: map[string]string{"A": "b"}}}
	return r, &now, p
}

func look(t *testing.T, r *Runner, p policy.Policy, screen checks.Level) (string, time.Duration) {
	t.Helper()
	fs, again := r.Look(context.Background(), p, checks.Inventory{Node: "gpu001", BootID: "boot"}, screen)
	var out []string
	for _, f := range fs {
		if f.Subject.Node != "gpu001" || f.BootID != "boot" || f.At.IsZero() {
			t.Errorf("%+v", f)
		}
		out = append(out, fmt.Sprintf("%s %s %s: %s", f.Check, f.Verdict, f.Action, f.Reason))
	}
	return strings.Join(out, "\n"), again
}

func TestLook(t *testing.T) {
	r, now, p := newRunner(t)
	want := func(what, wantText string, wantAgain time.Duration, screen checks.Level) {
		t.Helper()
		if got, again := look(t, r, p, screen); got != wantText || again != wantAgain {
			t.Errorf("%s: got %q again in %v, want %q in %v", what, got, again, wantText, wantAgain)
		}
	}
	first := "user/count pass none: run 1 of user/count on gpu001 in 30 s, A=b, HOME=/"
	want("the first look runs it", first, longest, checks.NoLevel)
	*now = now.Add(40 * time.Second)
	want("before it is due it stays", first, 20*time.Second, checks.NoLevel)
	*now = now.Add(20 * time.Second)
	want("when it is due it runs", strings.Replace(first, "run 1", "run 2", 1), longest, checks.NoLevel)
	want("a screen does not run it", strings.Replace(first, "run 1", "run 2", 1), longest, checks.Quick)
	u := p.UserChecks["count"]
	u.Screen = true
	p.UserChecks = map[string]policy.UserCheck{"count": u}
	want("a changed check runs", strings.Replace(first, "run 1", "run 3", 1), longest, checks.NoLevel)
	want("a screen runs what screens run", strings.Replace(first, "run 1", "run 4", 1), longest, checks.Quick)
	p.Checks = map[string]policy.Check{"user/count": {Mode: policy.Off}}
	want("off", "", longest, checks.NoLevel)
	p.Checks, p.UserChecks = nil, nil
	want("none", "", longest, checks.NoLevel)
	if len(r.last) > 0 {
		t.Errorf("kept %v", r.last)
	}
}

// What a check leaves open counts for a screen when screens run it.
func TestAScreenDoesNotWaitForOtherChecks(t *testing.T) {
	r, _, p := newRunner(t)
	for _, screen := range []bool{false, true} {
		p.UserChecks = map[string]policy.UserCheck{"open": {Command: []string{"/bin/sh", "-c", "echo who knows; exit 3"}, Screen: screen}}
		want := ""
		if screen {
			want = "user/open unknown none: who knows"
		}
		if got, _ := look(t, r, p, checks.Standard); got != want {
			t.Errorf("screen %t: got %q, want %q", screen, got, want)
		}
		if got, _ := look(t, r, p, checks.NoLevel); got != "user/open unknown none: who knows" {
			t.Errorf("in the background: got %q", got)
		}
	}
}

func TestACheckKeepsToItsBounds(t *testing.T) {
	r, _, p := newRunner(t)
	for _, tt := range []struct {
		name, script string
		change       func(*policy.UserCheck)
		want         string
	}{
		{"slow", "exec sleep 20", func(u *policy.UserCheck) { u.Timeout = policy.Duration(200 * time.Millisecond) }, "unknown none: did not end within 200ms"},
		{"loud", "yes", func(u *policy.UserCheck) { u.Output = 100 }, "unknown none: printed more than 100 bytes"},
		{"fat", "exec dd if=/dev/zero of=/dev/null bs=400M count=1", func(u *policy.UserCheck) { u.Memory = 32 << 20; u.Format = "exit" }, "fail drain: exit status 1: dd: memory exhausted"},
		{"crash", "kill -ABRT $$", nil, "unknown none: ended by aborted"},
		{"critical", "echo bad; exit 2", nil, "fail drain: bad"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := policy.UserCheck{Command: []string{"/bin/sh", "-c", tt.script}}
			if tt.change != nil {
				tt.change(&u)
			}
			p.UserChecks = map[string]policy.UserCheck{tt.name: u}
			got, _ := look(t, r, p, checks.NoLevel)
			if !strings.HasPrefix(got, "user/"+tt.name+" "+tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Who stops waiting for a check has not seen it pass its deadline.
func TestACheckThatIsBrokenOff(t *testing.T) {
	r, _, _ := newRunner(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	o := r.Run(ctx, "slow", policy.UserCheck{Command: []string{"/bin/sh", "-c", "exec sleep 20"}}, "n")
	if o.Err != "broken off before its deadline" {
		t.Errorf("%+v", o)
	}
}

func TestWhatOthersCanChangeIsNotRunAsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	r, _, p := newRunner(t)
	u := p.UserChecks["count"]
	if err := os.Chmod(u.Command[0], 0o777); err != nil {
		t.Fatal(err)
	}
	if o := r.Run(context.Background(), "count", u, "n"); !strings.HasPrefix(o.Err, "not safe to run as root: ") {
		t.Errorf("%+v", o)
	}
	u.User = "nobody"
	u.Command = []string{"/usr/bin/id", "-un"}
	if o := New(nil).Run(context.Background(), "count", u, "n"); o.Stdout != "nobody\n" {
		t.Errorf("%+v", o)
	}
}

func TestQuiesceWaitsForACheck(t *testing.T) {
	r, _, p := newRunner(t)
	p.UserChecks = map[string]policy.UserCheck{"slow": {Command: []string{"/bin/sleep", "0.5"}}}
	begun := make(chan struct{})
	go func() {
		close(begun)
		r.Look(context.Background(), p, checks.Inventory{}, checks.NoLevel)
	}()
	<-begun
	for r.mu.TryLock() {
		r.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := r.Quiesce(ctx); err == nil || !strings.HasPrefix(err.Error(), "a user check runs: ") {
		t.Errorf("got %v", err)
	}
	if err := r.Quiesce(context.Background()); err != nil {
		t.Error(err)
	}
}
