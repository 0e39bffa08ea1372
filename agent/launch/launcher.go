package launch

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// A Node is what a launch asks of the agent.
type Node interface {
	// Check checks the node for a job as a prolog does and says whether it may start, and on which certificate.
	Check(ctx context.Context, o wire.GangOrder) (ok bool, why string, serial uint64)
	// Ended is called when the job's last process is gone, as an epilog.
	Ended(ctx context.Context, o wire.GangOrder)
}

// A Config is what a Launcher is made of.
type Config struct {
	Node   string
	BootID func() (string, error)
	Dir    string   // for scripts; emptied at start
	Keeper []string // the command, up to its argument, that calls Keep
	Agent  Node
	Log    *slog.Logger
	Grace  time.Duration // between SIGTERM and SIGKILL; 0: 10 s
}

// A Launcher carries out orders. Its methods may be called from any goroutine.
type Launcher struct {
	cfg Config
	ctx context.Context // of Run: the ranks end with it
	wg  sync.WaitGroup

	mu       sync.Mutex
	launches map[string]*launch
	unsent   map[string]wire.GangStatus // by launch: the last word, until it has been told
	news     chan struct{}              // has room for one
}

// A launch is one under way. Its fields belong to the launcher's mutex.
type launch struct {
	order wire.GangOrder
	phase string          // "", GangReady, GangRunning, GangRefused, GangExited: what was said last
	last  wire.GangStatus // the same, whole
	goes  chan struct{}   // closed at GO
	stops chan struct{}   // closed when it must end
	went  bool
	ended bool // stops is closed
}

// New returns a Launcher that does nothing before Run.
func New(cfg Config) *Launcher {
	if cfg.Grace <= 0 {
		cfg.Grace = 10 * time.Second
	}
	return &Launcher{cfg: cfg, launches: map[string]*launch{}, unsent: map[string]wire.GangStatus{}, news: make(chan struct{}, 1)}
}

// Run ends what an earlier agent left and lets launches begin, until ctx ends; then it ends all ranks and waits for them.
func (l *Launcher) Run(ctx context.Context) error {
	l.clear(ctx)
	if err := emptied(l.cfg.Dir); err != nil {
		return fmt.Errorf("launch directory: %w", err)
	}
	l.mu.Lock()
	l.ctx = ctx
	for _, x := range l.launches {
		l.begin(x)
	}
	l.mu.Unlock()
	<-ctx.Done()
	l.wg.Wait()
	return nil
}

// Want takes in the orders of a desired state, whole: a launch that is not among them is over.
func (l *Launcher) Want(orders []wire.GangOrder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	named := map[string]bool{}
	for _, o := range orders {
		named[o.Launch] = true
		x := l.launches[o.Launch]
		if x == nil {
			x = &launch{order: o, goes: make(chan struct{}), stops: make(chan struct{})}
			l.launches[o.Launch] = x
			if l.ctx != nil {
				l.begin(x)
			}
		}
		x.order.Phase = o.Phase
		switch o.Phase {
		case wire.GangGo:
			if !x.went {
				x.went = true
				close(x.goes)
			}
		case wire.GangStop:
			x.stop()
		}
	}
	for id, x := range l.launches {
		if named[id] {
			continue
		}
		x.stop()
		if x.phase == wire.GangExited || x.phase == wire.GangRefused {
			delete(l.launches, id)
			delete(l.unsent, id)
		}
	}
}

// occupied says which other launch still has processes on a GPU that o is to have; empty for none. The control plane may have
// given up on one whose processes do not end, as they do not when they hang in the driver.
func (l *Launcher) occupied(o wire.GangOrder) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, x := range l.launches {
		if id == o.Launch || !x.went || !x.has() {
			continue
		}
		for _, gpu := range o.GPUIndices {
			if slices.Contains(x.order.GPUIndices, gpu) {
				return fmt.Sprintf("processes of job %d have not ended on GPU %d", x.order.Job, gpu)
			}
		}
	}
	return ""
}

// has reports whether x has ranks here, or is about to: it does until their end is told.
func (x *launch) has() bool { return x.phase == wire.GangReady || x.phase == wire.GangRunning }

func (x *launch) stop() {
	if !x.ended {
		x.ended = true
		close(x.stops)
	}
}

// begin starts the goroutine of a launch. The caller holds mu.
func (l *Launcher) begin(x *launch) {
	o := x.order
	l.wg.Go(func() { l.carry(l.ctx, x, o) })
}

// say tells the control plane how a launch stands here, in place of what was not yet told.
func (l *Launcher) say(x *launch, s wire.GangStatus) {
	s.Launch, s.Node = x.order.Launch, l.cfg.Node
	s.BootID, _ = l.cfg.BootID() // an empty one is taken for this boot's
	l.mu.Lock()
	x.phase, x.last = s.Phase, s
	l.unsent[s.Launch] = s
	l.mu.Unlock()
	l.cfg.Log.Info("launch", "job", x.order.Job, "gang", s.Launch, "state", s.Phase, "reason", s.Reason)
	l.knock()
}

func (l *Launcher) knock() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// NextStatus waits for a status to tell.
func (l *Launcher) NextStatus(ctx context.Context) (wire.GangStatus, error) {
	for {
		l.mu.Lock()
		for _, s := range l.unsent {
			l.mu.Unlock()
			return s, nil
		}
		l.mu.Unlock()
		select {
		case <-l.news:
		case <-ctx.Done():
			return wire.GangStatus{}, context.Cause(ctx)
		}
	}
}

// StatusSent notes that s has been told.
func (l *Launcher) StatusSent(s wire.GangStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, ok := l.unsent[s.Launch]; ok && now.Phase == s.Phase {
		delete(l.unsent, s.Launch)
	}
	if len(l.unsent) > 0 {
		l.knock()
	}
}

// Repeat tells everything again: who leads now has not heard it.
func (l *Launcher) Repeat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, x := range l.launches {
		if _, waits := l.unsent[id]; !waits && x.phase != "" {
			l.unsent[id] = x.last
		}
	}
	if len(l.unsent) > 0 {
		l.knock()
	}
}

// Jobs lists the jobs that have ranks here, or are about to.
func (l *Launcher) Jobs() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []int64
	for _, x := range l.launches {
		if x.has() {
			out = append(out, x.order.Job)
		}
	}
	return out
}
