package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A Prober reads the hardware once. It keeps its own deadlines: a call that hangs comes back as part of the snapshot.
type Prober interface {
	Snapshot(ctx context.Context) (catalog.Snapshot, error)
	// Renew has the next Snapshot read anew what stands for a while because reading it is not free.
	Renew()
	// Quiesce ends every process that holds a device open. The next Snapshot starts afresh.
	Quiesce(ctx context.Context) error
}

// An Outbox keeps reports until the control plane has them.
type Outbox interface {
	Put(r checks.Report) error
	Waiting() int
}

// A Permitter asks the control plane for leave to exit 1 from a prolog.
type Permitter interface {
	Permit(ctx context.Context, ask wire.PermitAsk) (wire.PermitAnswer, error)
}

// A Keeper takes files of evidence for a case to where they outlive the node.
type Keeper interface {
	KeepEvidence(ctx context.Context, id, name, sum string, data []byte) (wire.EvidenceKept, error)
}

// A Runner carries out what touches the node beyond reading it.
type Runner interface {
	// Reset resets one GPU. The caller has made sure that no process has it open.
	Reset(ctx context.Context, gpuUUID string) error
	// Reboot starts a reboot. It returns when that is under way.
	Reboot(ctx context.Context) error
	// Holders names the processes that have a GPU device file open.
	Holders() ([]string, error)
	// BugReport has the driver's own report written, and returns the file in dir; "" when there is no program for it.
	BugReport(ctx context.Context, dir string) (file string, err error)
}

// A Config is what an Agent is made of.
type Config struct {
	Node     string
	Version  string // of the program
	StateDir string
	BootID   func() (string, error) // read anew each time: a changed boot id ends Run with a BootChangedError
	Clock    func() time.Duration   // CLOCK_BOOTTIME
	Prober   Prober
	Asides   []Aside            // what is read beside the snapshot
	Golden   Tester             // nil: no golden kernel runs for a prolog
	Events   <-chan DriverEvent // XIDs by another way than the kernel log; nil: there is none
	Kernel   KernelLog          // nil: no kernel log is read, and every suite is Unknown in it
	Tree     aer.Tree           // the PCI tree; the zero value attributes errors of ports to no GPU
	// DumpKernel reads the whole kernel log anew, as evidence; nil: there is none.
	DumpKernel func(context.Context) ([]KernelRecord, error)
	Outbox     Outbox
	Permit     Permitter // nil: never enrolled; permits go unanswered
	Keeper     Keeper    // nil: never enrolled; evidence stays on the node
	Runner     Runner
	Verify     func(wire.GrantedCertificate, map[string][]byte) error // the certificate's signature, with the keys of desired state
	Interval   time.Duration                                          // overrides the policy's; 0: the policy's
	Log        *slog.Logger

	// OnGangs is told of the launches of each desired state, whole; nil: this agent runs none.
	OnGangs    func([]wire.GangOrder)
	OnPolicy   func(policy.Policy) // told of each policy that comes into force; may be nil
	Alive      func(status string) // called by the main loop while it turns and cycles end; nil: nobody watches
	AliveEvery time.Duration
}

// A BootChangedError ends Run: the node, or what simulates it, has booted, and nothing held in memory counts any more.
type BootChangedError struct{ From, To string }

func (e *BootChangedError) Error() string {
	return fmt.Sprintf("boot id changed from %s to %s", e.From, e.To)
}

// An Agent is one node's agent. Make one with New, then Run it; its other methods may be called from any goroutine
// while it runs.
type Agent struct {
	cfg     Config
	log     *slog.Logger
	store   store
	bootID  string
	policy  atomic.Pointer[policy.Policy] // as it holds for this node
	flights *flights
	mail    chan func()
	done    chan struct{} // closed when the loop has ended
	effects *effectBook
	stats   statsBook
	handled atomic.Uint64 // kernel records judged, of those read
	read    atomic.Uint64 // kernel records read
	judged  atomic.Uint64 // the last kernel record that held nothing of ours, all before it being judged
	stopMu  sync.Mutex
	stop    context.CancelCauseFunc

	// Owned by the loop.
	desired     wire.Desired
	known       bool
	held        *Held
	tombstone   *Tombstone
	contact     *time.Duration
	contactOn   time.Duration           // boot clock of the contact that is on disk
	fleet       policy.Policy           // as the control plane sent it
	resolvedFor policy.Hardware         // for which policy was made of fleet
	suites      map[checks.Level]string // the digest of each level's suite under policy and with this program's golden kernels
	seen        *Seen
	last        *catalog.Snapshot
	lastFound   []checks.Finding   // of the last snapshot, in run order
	aside       [][]checks.Finding // what each of the asides found last
	inventory   checks.Inventory
	kernel      keptKernel
	kernelNew   bool // kernel is not on disk yet
	kernelLog   catalog.Log
	sources     xidSources
	lostAt      time.Duration
	lost        uint64
	kernelErr   string
	watchers    []watcher
	watcherID   uint64
	ledger      *Ledger
	window      *Window
	events      []checks.Finding // harmless events for the next routine report
	jobs        []jobRecord
	unsaved     chan []jobRecord // holds the jobs that are to be on disk next; the loop alone sends
	cycle       *time.Timer      // begins the next cycle
	cycleDue    time.Duration    // boot clock when it does
	cycleEnd    time.Duration    // boot clock when a cycle last ended
	sentInv     string           // what hardware was last told, as one string
}

// New reads the state directory and returns an agent ready to run.
func New(cfg Config) (*Agent, error) {
	a := &Agent{
		cfg: cfg, log: cfg.Log.With("node", cfg.Node), store: store{cfg.StateDir, cfg.Log},
		mail: make(chan func(), 64), done: make(chan struct{}), ledger: NewLedger(), unsaved: make(chan []jobRecord, 1),
		aside:     make([][]checks.Finding, len(cfg.Asides)),
		kernelLog: catalog.Log{Tree: cfg.Tree},
	}
	a.flights = newFlights(cfg.Prober.Snapshot, a.snapshotLimit)
	var err error
	if a.bootID, err = cfg.BootID(); err != nil {
		return nil, fmt.Errorf("boot id: %w", err)
	}
	if err := a.store.open(); err != nil {
		return nil, fmt.Errorf("state directory %s: %w", cfg.StateDir, err)
	}
	a.setPolicy(policy.Default())
	a.restore()
	if a.effects, err = openEffects(a.store, a.bootID); err != nil {
		return nil, err
	}
	return a, nil
}

// restore takes up what an earlier run in this boot left on disk.
func (a *Agent) restore() {
	var d keptDesired
	if a.store.load("desired.json", &d) && a.sound(d) {
		a.desired, a.known = d.Desired, true
		a.setPolicy(d.Desired.Policy)
		if d.BootID == a.bootID {
			a.held = a.hold(d.Desired.Certificate, d.Received, nil)
			if a.held != nil {
				a.held.Expires, a.held.GraceUntil = d.Expires, d.GraceUntil
			}
		}
	}
	a.restoreTombstone()
	var c keptClock
	if a.store.load("contact.json", &c) && c.BootID == a.bootID {
		a.contact, a.contactOn = &c.At, c.At
	}
	var k keptKernel
	if a.store.load("kernel.json", &k) && k.BootID == a.bootID {
		a.kernel = k
	}
	a.kernel.BootID = a.bootID
	if a.store.load("seen.json", &a.inventory) {
		a.resolve(a.hardware())
	}
	var jobs []jobRecord
	if a.store.load("jobs.json", &jobs) {
		for _, j := range jobs {
			if j.BootID == a.bootID {
				a.jobs = append(a.jobs, j)
			}
		}
	}
}

// sound reports whether a kept desired state is this node's and makes sense. One that does not is as good as none.
func (a *Agent) sound(d keptDesired) bool {
	if d.Desired.Node != a.cfg.Node {
		a.log.Warn("desired state on disk is another node's and is left aside", "file", "desired.json", "of", d.Desired.Node)
		return false
	}
	if faults := policy.Validate(d.Desired.Policy); len(faults) > 0 {
		a.log.Warn("desired state on disk makes no sense and is left aside", "file", "desired.json", "path", faults[0].Path, "err", faults[0].Message)
		return false
	}
	return true
}

// setPolicy puts a policy in force on this node.
func (a *Agent) setPolicy(p policy.Policy) {
	a.fleet = p
	a.resolve(a.hardware())
}

// resolve makes of the fleet's policy the one for this node with that hardware. It runs in the loop, or before it.
func (a *Agent) resolve(h policy.Hardware) {
	a.resolvedFor = h
	p := a.fleet.ForNode(a.cfg.Node, h, a.desired.Learned)
	if faults := policy.Validate(p); len(faults) > 0 { // each override alone is sound; several together may not be
		a.log.Error("overrides make no sense together on this node and are left aside", "revision", p.Version, "path", faults[0].Path, "err", faults[0].Message, "count", len(faults))
		p = a.fleet
		p.Overrides = nil
		p = p.ForNode(a.cfg.Node, h, a.desired.Learned)
	}
	a.policy.Store(&p)
	if a.cfg.OnPolicy != nil {
		a.cfg.OnPolicy(p)
	}
	// Without what the fleet has learned: that may change from hour to hour, and a pass means the same.
	plain := a.fleet.ForNode(a.cfg.Node, h, policy.Set{})
	a.suites = map[checks.Level]string{}
	for l := checks.QuickMIG; l <= checks.Intake; l++ {
		a.suites[l] = catalog.Digest(l, plain)
	}
	a.window = NewWindow(p.Agent.IncidentGap.D(), p.Agent.IncidentCause.D())
}

// Run reads, judges and answers until ctx ends. It returns nil after an orderly stop.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.stopMu.Lock()
	a.stop = cancel
	a.stopMu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { a.flights.run(ctx) })
	if a.cfg.Kernel != nil {
		wg.Go(func() { a.readKernel(ctx) })
	}
	if a.cfg.Events != nil {
		wg.Go(func() { a.readEvents(ctx) })
	}
	for i := range a.cfg.Asides {
		wg.Go(func() { a.lookAside(ctx, i) })
	}
	wg.Go(func() { a.carryEffects(ctx) })
	wg.Go(a.writeJobs)
	a.loop(ctx)
	close(a.done)
	wg.Wait()
	a.saveAll()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// fail ends Run with err.
func (a *Agent) fail(err error) {
	a.stopMu.Lock()
	defer a.stopMu.Unlock()
	if a.stop != nil {
		a.stop(err)
	}
}

// loop owns the state. It never waits for anything but its own disk.
func (a *Agent) loop(ctx context.Context) {
	a.cycle = time.NewTimer(0)
	defer a.cycle.Stop()
	var alive <-chan time.Time
	if a.cfg.Alive != nil && a.cfg.AliveEvery > 0 {
		t := time.NewTicker(a.cfg.AliveEvery)
		defer t.Stop()
		alive = t.C
	}
	a.cycleEnd = a.cfg.Clock()
	running := false
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-a.mail:
			f()
		case <-a.cycle.C:
			a.cycleIn(a.interval())
			if running || !a.sameBoot() {
				continue
			}
			running = true
			go func() {
				snap, err := a.flights.fresh(ctx)
				a.post(ctx, func() {
					running = false
					a.endCycle(snap, err)
					if undecided(snap) {
						a.cycleIn(min(a.interval(), recheck))
					}
				})
			}()
		case <-alive:
			if a.cfg.Clock()-a.cycleEnd < max(10*a.interval(), 5*time.Minute) {
				a.cfg.Alive(a.oneLine())
			}
		}
	}
}

// cycleIn has the next cycle begin after d. It runs in the loop.
func (a *Agent) cycleIn(d time.Duration) {
	a.cycleDue = a.cfg.Clock() + d
	a.cycle.Reset(d)
}

// recheck is how soon a cycle follows one that left a hanging GPU undecided.
const recheck = 2 * time.Second

// undecided reports whether a call on a GPU hangs and it is still being tried: the next look may settle it.
func undecided(s catalog.Snapshot) bool {
	return slices.ContainsFunc(s.GPUs, func(g catalog.GPUState) bool { return g.Call.Hung != "" && !g.Call.Blocked })
}

// snapshotLimit leaves a prolog's suite the time to judge what was read when something hangs.
func (a *Agent) snapshotLimit() time.Duration {
	const margin = time.Second
	return max(a.policy.Load().Hooks.Budget.D()-margin, margin)
}

func (a *Agent) interval() time.Duration {
	if a.cfg.Interval > 0 {
		return a.cfg.Interval
	}
	if d := a.policy.Load().Agent.Interval.D(); d > 0 {
		return d
	}
	return policy.Default().Agent.Interval.D()
}

// post has the loop run f some time soon, unless the agent ends first.
func (a *Agent) post(ctx context.Context, f func()) {
	select {
	case a.mail <- f:
	case <-ctx.Done():
	case <-a.done:
	}
}

// errStopping is what a call gets when the agent ends before it is served.
var errStopping = errors.New("the agent is stopping")

// call has the loop run f and waits for it.
func (a *Agent) call(ctx context.Context, f func()) error {
	ran := make(chan struct{})
	select {
	case a.mail <- func() { f(); close(ran) }:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-a.done:
		return errStopping
	}
	select {
	case <-ran:
		return nil
	case <-a.done:
		return errStopping
	}
}

// sameBoot reports whether the node is still in the boot the agent started in. If not, the agent ends.
func (a *Agent) sameBoot() bool {
	id, err := a.cfg.BootID()
	if err != nil {
		a.log.Error("boot id not read", "err", err)
		return true // the certificate's own checks still hold for the boot we know
	}
	if id != a.bootID {
		a.fail(&BootChangedError{a.bootID, id})
		return false
	}
	return true
}

// saveAll writes what is only kept lazily, before an orderly end.
func (a *Agent) saveAll() {
	a.saveKernel()
	if a.contact != nil && *a.contact != a.contactOn {
		_ = a.store.save("contact.json", keptClock{a.bootID, *a.contact})
	}
}
