// Package user runs the site's own executables that policy names, within the bounds that policy sets.
package user

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-gpu/assay/agent/probe/child"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/user"
)

// A Runner runs user checks and keeps what each found last. One at a time runs: they share the node with its jobs.
type Runner struct {
	helper []string // the command that calls child.Become
	now    func() time.Time

	read atomic.Pointer[catalog.Beside] // what was read last; never changed in place

	mu   sync.Mutex
	last map[string]run
}

// run is how a check went last.
type run struct {
	catalog.UserRead
	by policy.UserCheck
}

// New makes a runner. helper is the command, up to its arguments, that calls child.Become.
func New(helper []string) *Runner {
	r := &Runner{helper: helper, now: time.Now, last: map[string]run{}}
	r.read.Store(&catalog.Beside{})
	return r
}

// Longest and shortest times between two looks: a policy that has changed is noticed within the longest.
const (
	longest  = 30 * time.Second
	shortest = time.Second
)

// Look runs the checks that are due, or that a screen runs, and gives what all of them found last, and when to look again.
// screen is the level of the screen that it is part of; NoLevel for none.
func (r *Runner) Look(ctx context.Context, p policy.Policy, known checks.Inventory, screen checks.Level) (found []checks.Finding, again time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.last {
		if _, ok := p.UserChecks[name]; !ok {
			delete(r.last, name)
		}
	}
	again = longest
	for _, name := range slices.Sorted(maps.Keys(p.UserChecks)) {
		u := p.UserChecks[name]
		if p.ModeOf(user.CheckID(name)) == policy.Off {
			delete(r.last, name)
			continue
		}
		l, ran := r.last[name]
		due := l.At.Add(u.EveryOr())
		if !ran || !reflect.DeepEqual(l.by, u) || !r.now().Before(due) || screen != checks.NoLevel && u.Screen {
			if ctx.Err() != nil {
				break
			}
			o := r.Run(ctx, name, u, known.Node)
			l = run{catalog.UserRead{At: r.now(), Outcome: o}, u}
			r.last[name] = l
			due = l.At.Add(u.EveryOr())
		}
		again = min(again, due.Sub(r.now()))
	}
	read := catalog.Beside{User: map[string]catalog.UserRead{}}
	for name, l := range r.last {
		read.User[name] = l.UserRead
	}
	r.read.Store(&read)
	return catalog.JudgeBeside(read, screen, known, p), max(again, shortest)
}

// Readings is what was read last. It does not wait for a check that runs.
func (r *Runner) Readings() catalog.Beside { return *r.read.Load() }

// path is where executables find others.
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// grace is what an executable has after SIGTERM.
const grace = 2 * time.Second

// Run runs one check now.
func (r *Runner) Run(ctx context.Context, name string, u policy.UserCheck, node string) user.Outcome {
	if len(u.Command) == 0 {
		return user.Outcome{Err: "no command", Exit: -1}
	}
	if err := child.Trusted(u.Command[0]); err != nil && os.Geteuid() == 0 && (u.User == "" || u.User == "root") {
		return user.Outcome{Err: fmt.Sprintf("not safe to run as root: %v", err), Exit: -1}
	}
	env := []string{
		"PATH=" + path, "LANG=C.UTF-8", "HOME=/", "ASSAY_CHECK=" + user.CheckID(name), "ASSAY_NODE=" + node,
		"ASSAY_TIMEOUT=" + strconv.FormatFloat(u.TimeoutOr().Seconds(), 'f', -1, 64),
	}
	for _, k := range slices.Sorted(maps.Keys(u.Env)) {
		env = append(env, k+"="+u.Env[k])
	}
	o := child.Run(ctx, child.Spec{
		Argv: u.Command, Env: env, User: u.User, Timeout: u.TimeoutOr(), Grace: grace, Output: u.OutputOr(), Helper: r.helper,
		Limits: &child.Limits{Memory: uint64(u.MemoryOr()), Files: 1024, FileSize: 64 << 20, CPU: uint64(u.TimeoutOr().Seconds()) + 1},
	})
	out := user.Outcome{Err: o.Err, TimedOut: o.TimedOut, Stuck: o.Stuck, Cut: o.Cut, Exit: o.Exit, Stdout: text(string(o.Stdout)), Stderr: text(o.Stderr)}
	if o.Broken && !o.Stuck {
		out.Err = "broken off before its deadline"
	}
	if o.Signal != 0 {
		out.Signal = o.Signal.String()
	}
	return out
}

// text is what an executable printed as it can be written down: it may print any bytes.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Quiesce waits until no check runs.
func (r *Runner) Quiesce(ctx context.Context) error {
	for !r.mu.TryLock() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("a user check runs: %w", context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
	r.mu.Unlock()
	return nil
}
