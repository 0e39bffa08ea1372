package nvml

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
)

// A Config says how to run and watch the child.
type Config struct {
	Argv    []string         // the child's command; empty: this program with the arguments "probe nvml"
	Env     []string         // more environment for the child, as NAME=value
	RunDir  string           // holds the file "blocked"; empty: hangs are forgotten when the agent restarts
	BootID  string           // the file with the boot id; empty: /proc/sys/kernel/random/boot_id
	Sysfs   string           // empty: /sys
	Cgroup  string           // a cgroup v2 folder to make for the children, in a delegated one (see OwnCgroup); empty: the agent's own
	Node    string           // written into every GPU
	Known   []checks.GPU     // as last seen, so that a GPU that cannot be opened still has a name
	Policy  policy.Agent     // deadlines; zero values stand for the default policy's
	Event   func(XIDEvent)   // told of each XID that the driver raises, from any goroutine, and must not wait; nil: none are asked for
	Restart func(why string) // told of each child that ended badly, as Stats.Restarts counts them; may be nil
	Log     *slog.Logger     // nil: none
}

// Stats are a supervisor's counters since New.
type Stats struct {
	Calls    uint64            // driver calls made
	Restarts map[string]uint64 // children that ended badly, by why: hung, died, init_hung, init_failed
}

// A Supervisor reads the driver through children that it can lose. It makes no driver call itself.
//
// A resident child reads all GPUs that answer. A GPU on which a call passed its deadline is a suspect: it is retried in
// fresh children of its own, one at a time, while the resident one goes on with the others, until it answers or has hung
// in as many as the policy says; then it is blocked.
type Supervisor struct {
	cfg  Config
	log  *slog.Logger
	kill func(*os.Process) error // nil but in tests

	turn chan struct{} // holds a token while nobody reads with the resident child

	mu       sync.Mutex
	policy   policy.Agent
	deaf     bool // no events are wanted
	closed   bool
	quiet    bool // Quiesce was called, and no Snapshot since
	boot     string
	serial   string // the node's
	driver   string
	library  string // version
	blocked  blockedFile
	initHung int // fresh children, in a row, in which nvmlInit passed its deadline
	known    []checks.GPU
	suspects map[string]*suspect
	retrying bool                // a goroutine retries the suspects
	settled  chan struct{}       // closed when it ends
	stopping chan struct{}       // closed to make it end
	stuck    map[*process]string // children that outlive SIGKILL: their last call
	stats    Stats

	main *process // the resident child; owned by who holds the turn
}

// A suspect is a GPU on which a call passed its deadline and that has not answered since.
type suspect struct {
	gpu    checks.GPU
	call   string
	count  int               // fresh children, in a row
	answer *catalog.GPUState // what it said in the end; it stays a suspect until the next round begins
}

var errClosed = errors.New("the NVML probe is closed")

// New makes a supervisor. It starts no child: the first Snapshot does.
func New(cfg Config) (*Supervisor, error) {
	if len(cfg.Argv) == 0 {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("NVML probe: %w", err)
		}
		cfg.Argv = []string{exe, "probe", "nvml"}
	}
	if cfg.BootID == "" {
		cfg.BootID = "/proc/sys/kernel/random/boot_id"
	}
	if cfg.Sysfs == "" {
		cfg.Sysfs = "/sys"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Supervisor{
		cfg: cfg, log: cfg.Log, turn: make(chan struct{}, 1), known: cfg.Known,
		suspects: map[string]*suspect{}, stuck: map[*process]string{}, stats: Stats{Restarts: map[string]uint64{}},
	}
	s.turn <- struct{}{}
	s.SetPolicy(cfg.Policy)
	if err := s.readBoot(); err != nil {
		return nil, err
	}
	return s, nil
}

// SetPolicy changes the deadlines from the next request on.
func (s *Supervisor) SetPolicy(p policy.Agent) {
	d := policy.Default().Agent
	for _, v := range []struct{ have, or *policy.Duration }{
		{&p.CallDeadline, &d.CallDeadline}, {&p.InitDeadline, &d.InitDeadline}, {&p.StuckChild, &d.StuckChild},
	} {
		if *v.have <= 0 {
			*v.have = *v.or
		}
	}
	if p.HungChildren <= 0 {
		p.HungChildren = d.HungChildren
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policy = p
}

// SetEvents says whether XIDs that the driver raises are wanted, where the Config has them told; at first they are. The
// resident child is started anew for it, at the next Snapshot.
func (s *Supervisor) SetEvents(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = !on
}

func (s *Supervisor) wantEvents() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.Event != nil && !s.deaf
}

// limits is the policy in force.
func (s *Supervisor) limits() policy.Agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policy
}

// readBoot looks at the boot id. After a reboot, which only a simulated node lives through, all that was held against its
// GPUs is void.
func (s *Supervisor) readBoot() error {
	b, err := os.ReadFile(s.cfg.BootID)
	if err != nil {
		return fmt.Errorf("NVML probe: boot id: %w", err)
	}
	boot := trim(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if boot == s.boot {
		return nil
	}
	again := s.boot != ""
	s.boot, s.serial, s.driver, s.library, s.initHung = boot, hostSerial(s.cfg.Sysfs), "", "", 0
	s.blocked = loadBlocked(s.cfg.RunDir, boot, s.log)
	clear(s.suspects)
	if again {
		s.stopRetries()
		if s.main != nil {
			s.main.end(0)
			s.main = nil
		}
	}
	return nil
}

// Snapshot reads every GPU that may be asked and returns what it has when ctx ends: a GPU that did not answer by then has
// its last identity and unread readings. It fails only after Close, and when the boot id cannot be read.
func (s *Supervisor) Snapshot(ctx context.Context) (catalog.Snapshot, error) {
	r := &round{s: s, count: -1, read: map[string]catalog.GPUState{}, done: make(chan struct{})}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return s.assemble(r, context.Cause(ctx))
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		s.turn <- struct{}{}
		return catalog.Snapshot{}, errClosed
	}
	if err := s.readBoot(); err != nil {
		s.turn <- struct{}{}
		return catalog.Snapshot{}, err
	}
	go func() {
		r.run()
		close(r.done)
		s.turn <- struct{}{}
	}()
	select {
	case <-r.done:
	case <-ctx.Done():
		r.abandon()
		return s.assemble(r, context.Cause(ctx))
	}
	select {
	case <-s.retry():
	case <-ctx.Done():
	}
	return s.assemble(r, context.Cause(ctx))
}

// Quiesce ends every child, so that none holds a device open; the next Snapshot starts afresh. It fails when a child
// cannot be ended, or when ctx is done before.
func (s *Supervisor) Quiesce(ctx context.Context) error {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return fmt.Errorf("quiesce NVML probe: %w", context.Cause(ctx))
	}
	defer func() { s.turn <- struct{}{} }()
	s.mu.Lock()
	s.quiet = true
	s.stopRetries()
	retries := s.settledOrClosed()
	s.mu.Unlock()
	select {
	case <-retries:
	case <-ctx.Done():
		return fmt.Errorf("quiesce NVML probe: %w", context.Cause(ctx))
	}
	if s.main != nil {
		s.retire(s.main, false)
		s.main = nil
	}
	for {
		stuck := s.stuckCall(0)
		if stuck == "" {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("quiesce NVML probe: a process in %s is still there: %w", stuck, context.Cause(ctx))
		}
	}
}

// Close ends every child for good.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(context.Background(), 2*time.Second, errors.New("2 s passed"))
	defer cancel()
	return s.Quiesce(ctx)
}

// Stats gives the supervisor's counters.
func (s *Supervisor) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{s.stats.Calls, maps.Clone(s.stats.Restarts)}
}

// Blocked lists what is not asked any more in this boot, by GPU UUID, or PCI address where none is known.
func (s *Supervisor) Blocked() map[string]Block {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.blocked.GPUs)
}
