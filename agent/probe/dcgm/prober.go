package dcgm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-gpu/assay/agent/probe/child"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/dcgm"
	"github.com/assay-gpu/assay/checks/policy"
)

// A Config says how DCGM is reached.
type Config struct {
	Argv  []string // the child's command, up to its flags
	Dcgmi string   // DCGM's command line, by name or path
	Env   []string // more environment for both, as NAME=value
}

// A Prober asks DCGM by policy, and keeps what it said last. One question at a time is asked.
type Prober struct {
	cfg Config
	now func() time.Time

	read atomic.Pointer[catalog.Beside] // what was read last; never changed in place

	mu    sync.Mutex
	asked time.Time // when the health watches were asked last
	since time.Time // since when they have been set, as far as is known
	stuck *stuckChild
}

// A stuckChild is a child that outlives SIGKILL. No other is started beside it.
type stuckChild struct {
	pid   int
	call  string
	since time.Time
}

// New makes a prober.
func New(cfg Config) *Prober {
	p := &Prober{cfg: cfg, now: time.Now}
	p.read.Store(&catalog.Beside{})
	return p
}

// Bounds on what is read, in bytes: 1024 incidents of 1 KiB, and some; a diagnostic's output is some 100 KiB.
const (
	maxAnswer = 4 << 20
	maxDiag   = 16 << 20
)

// Grace times after SIGTERM. dcgmi tells the host engine to stop the diagnostic; a child has nothing to tell.
const (
	childGrace = 100 * time.Millisecond
	diagGrace  = 10 * time.Second
)

// longest is the longest time between two looks at the policy.
const longest = 30 * time.Second

// Look asks the health watches when they are due by policy, and runs the diagnostic for a screen that includes it.
func (p *Prober) Look(ctx context.Context, pol policy.Policy, known checks.Inventory, screen checks.Level) (found []checks.Finding, again time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again = longest
	read := *p.read.Load()
	if pol.DCGM.Health == "off" || pol.ModeOf(dcgm.HealthID) == policy.Off {
		read.Health, p.asked = nil, time.Time{}
	} else {
		every := pol.DCGM.Every.D()
		if p.asked.IsZero() || screen != checks.NoLevel || !p.now().Before(p.asked.Add(every)) {
			h := p.health(ctx, pol)
			p.asked = p.now()
			read.Health = &catalog.HealthRead{At: p.asked, Health: h}
		}
		again = min(again, max(p.asked.Add(every).Sub(p.now()), time.Second))
	}
	if level := pol.DCGM.Screen; level > 0 && screen >= checks.Standard {
		d := p.diag(ctx, level, pol)
		read.Diag = &d
	}
	p.read.Store(&read)
	return catalog.JudgeBeside(read, screen, known, pol), again
}

// Readings is what was read last. It does not wait for a look that is being taken.
func (p *Prober) Readings() catalog.Beside { return *p.read.Load() }

// Quiesce waits until no question is being asked, and fails when a child cannot be ended.
func (p *Prober) Quiesce(ctx context.Context) error {
	for !p.mu.TryLock() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("DCGM is being asked: %w", context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
	defer p.mu.Unlock()
	if p.stuckNow() {
		return fmt.Errorf("a process in %s is still there", p.stuck.call)
	}
	return nil
}

// Health asks the health watches now.
func (p *Prober) Health(ctx context.Context, pol policy.Policy) dcgm.Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health(ctx, pol)
}

func (p *Prober) health(ctx context.Context, pol policy.Policy) dcgm.Health {
	if p.stuckNow() {
		if p.now().Sub(p.stuck.since) >= pol.Agent.StuckChild.D() {
			return dcgm.Health{Stuck: p.stuck.call}
		}
		return dcgm.Health{Err: fmt.Sprintf("a process in %s does not end", p.stuck.call)}
	}
	argv := append(append([]string{}, p.cfg.Argv...), "--every", pol.DCGM.Every.String())
	if pol.DCGM.Health != "embedded" {
		argv = append(argv, "--address", pol.DCGM.Address)
	}
	o := child.Run(ctx, child.Spec{Argv: argv, Env: p.env(), Timeout: pol.DCGM.Deadline.D(), Grace: childGrace, Output: maxAnswer})
	m, call := answer(o.Stdout)
	switch {
	case o.Stuck:
		p.stuck = &stuckChild{o.Pid, call, p.now()}
		return dcgm.Health{Err: fmt.Sprintf("%s does not return, and its process does not end", call)}
	case o.Broken:
		return dcgm.Health{Err: call + " was broken off before its deadline"}
	case o.TimedOut:
		return dcgm.Health{Err: fmt.Sprintf("%s did not return within %s", call, pol.DCGM.Deadline)}
	case m == nil:
		return dcgm.Health{Err: "the probe process ended" + in(call) + how(o)}
	}
	if !m.Watched || p.since.IsZero() {
		p.since = p.now() // an engine that was started anew, or nobody knows since when
	}
	h := *m.Health
	if h.Have == checks.Read && pol.DCGM.Health != "embedded" {
		h.Watched = p.now().Sub(p.since)
	}
	return h
}

// answer reads a child's lines: the answer, nil when there is none, and the call it made last.
func answer(out []byte) (m *message, call string) {
	call = "the start"
	d := json.NewDecoder(bytes.NewReader(out))
	for {
		var next message
		if d.Decode(&next) != nil {
			return m, call
		}
		if next.Call != "" {
			call = next.Call
		}
		if next.Health != nil {
			m = &next
		}
	}
}

func in(call string) string {
	if call == "" {
		return ""
	}
	return " in " + call
}

// how says how a child ended, in words.
func how(o child.Outcome) string {
	s := ""
	switch {
	case o.Err != "":
		s = ": " + o.Err
	case o.Cut:
		s = ": it said too much"
	case o.Signal != 0:
		s = ": " + o.Signal.String()
	default:
		s = fmt.Sprintf(": exit status %d", o.Exit)
	}
	if last := strings.TrimSpace(o.Stderr); last != "" {
		s += ": " + last[strings.LastIndexByte(last, '\n')+1:]
	}
	return s
}

// stuckNow reports whether a child that could not be ended is still there.
func (p *Prober) stuckNow() bool {
	if p.stuck == nil {
		return false
	}
	if _, err := os.Stat("/proc/" + strconv.Itoa(p.stuck.pid)); err != nil {
		p.stuck = nil
		return false
	}
	return true
}

func (p *Prober) env() []string { return append(os.Environ(), p.cfg.Env...) }

// Diag runs a level of the diagnostic now.
func (p *Prober) Diag(ctx context.Context, level int, pol policy.Policy) catalog.DiagRead {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.diag(ctx, level, pol)
}

func (p *Prober) diag(ctx context.Context, level int, pol policy.Policy) catalog.DiagRead {
	argv := []string{p.cfg.Dcgmi, "diag", "-j", "-r", strconv.Itoa(level)}
	if a := pol.DCGM.Address; a != policy.Default().DCGM.Address {
		argv = append(argv, "--host", a)
	}
	o := child.Run(ctx, child.Spec{Argv: argv, Env: p.env(), Timeout: pol.DCGM.Diag(level), Grace: diagGrace, Output: maxDiag})
	d := catalog.DiagRead{At: p.now(), Level: level}
	if o.Missing {
		d.Missing = o.Err
		return d
	}
	d.Output = strings.ToValidUTF8(string(o.Stdout), "\uFFFD")
	switch {
	case o.Err != "":
		d.Trouble = o.Err
	case o.Stuck:
		d.Trouble = "dcgmi is still there after SIGKILL"
	case o.Broken:
		d.Trouble = "dcgmi was broken off before its deadline"
	case o.TimedOut:
		d.Trouble = fmt.Sprintf("dcgmi did not end within %s", policy.Duration(pol.DCGM.Diag(level)))
	case o.Cut || o.Signal != 0:
		d.Trouble = "dcgmi ended" + how(o)
	default:
		d.Exit = &o.Exit
	}
	return d
}
