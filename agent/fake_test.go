package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// fakeHardware is a node's GPUs. It takes as long as delay to read.
type fakeHardware struct {
	mu       sync.Mutex
	snap     catalog.Snapshot
	err      error
	delay    time.Duration
	taken    int
	quiesced int
	renewed  int
}

func (h *fakeHardware) Snapshot(ctx context.Context) (catalog.Snapshot, error) {
	h.mu.Lock()
	delay := h.delay
	h.mu.Unlock()
	if delay > 0 && !sleep(ctx, delay) {
		return catalog.Snapshot{}, ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken++
	s := h.snap
	s.At = time.Now()
	s.GPUs = append([]catalog.GPUState(nil), h.snap.GPUs...)
	return s, h.err
}

func (h *fakeHardware) Renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.renewed++
}

func (h *fakeHardware) Quiesce(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.quiesced++
	return nil
}

// slow makes every snapshot take d.
func (h *fakeHardware) slow(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.delay = d
}

// counts returns how many snapshots were taken and how often the probe was quiesced.
func (h *fakeHardware) counts() (taken, quiesced int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.taken, h.quiesced
}

func (h *fakeHardware) change(f func(*catalog.Snapshot)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(&h.snap)
}

// fakeKernel is a kernel log.
type fakeKernel struct {
	mu   sync.Mutex
	recs []KernelRecord
	at   int
	seq  uint64
	more chan struct{}
}

func newFakeKernel() *fakeKernel { return &fakeKernel{more: make(chan struct{}, 1)} }

func (k *fakeKernel) add(lines ...string) {
	k.mu.Lock()
	for _, l := range lines {
		k.seq++
		k.recs = append(k.recs, KernelRecord{Seq: k.seq, Line: l, At: time.Now()})
	}
	k.mu.Unlock()
	token(k.more)
}

func (k *fakeKernel) Read(ctx context.Context) (KernelRecord, error) {
	for {
		k.mu.Lock()
		if k.at < len(k.recs) {
			r := k.recs[k.at]
			k.at++
			k.mu.Unlock()
			return r, nil
		}
		k.mu.Unlock()
		select {
		case <-k.more:
		case <-ctx.Done():
			return KernelRecord{}, ctx.Err()
		}
	}
}

func (k *fakeKernel) Drained() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at == len(k.recs)
}

// fakeOutbox keeps what is put into it.
type fakeOutbox struct {
	mu  sync.Mutex
	got []checks.Report
}

func (o *fakeOutbox) Put(r checks.Report) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.got = append(o.got, r)
	return nil
}

func (o *fakeOutbox) Waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.got)
}

// take returns the reports so far and forgets them.
func (o *fakeOutbox) take() []checks.Report {
	o.mu.Lock()
	defer o.mu.Unlock()
	got := o.got
	o.got = nil
	return got
}

// fakePermits answers permits after a while.
type fakePermits struct {
	mu    sync.Mutex
	asks  []wire.PermitAsk
	ans   wire.PermitAnswer
	err   error
	after time.Duration
}

func (p *fakePermits) Permit(ctx context.Context, ask wire.PermitAsk) (wire.PermitAnswer, error) {
	p.mu.Lock()
	p.asks = append(p.asks, ask)
	after, ans, err := p.after, p.ans, p.err
	p.mu.Unlock()
	if after > 0 && !sleep(ctx, after) {
		return wire.PermitAnswer{}, ctx.Err()
	}
	return ans, err
}

func (p *fakePermits) set(f func(*fakePermits)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

func (p *fakePermits) asked() []wire.PermitAsk {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]wire.PermitAsk(nil), p.asks...)
}

// fakeRunner notes what it was asked to do.
type fakeRunner struct {
	mu      sync.Mutex
	resets  []string
	reboots int
	holders []string
	err     error
	report  string // what the driver's report holds; "": there is none
}

func (r *fakeRunner) BugReport(_ context.Context, dir string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.report == "" {
		return "", nil
	}
	file := filepath.Join(dir, "nvidia-bug-report.log.gz")
	return file, os.WriteFile(file, []byte(r.report), 0o600)
}

func (r *fakeRunner) Reset(_ context.Context, uuid string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resets = append(r.resets, uuid)
	return r.err
}

func (r *fakeRunner) Reboot(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reboots++
	return r.err
}

func (r *fakeRunner) Holders() ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holders, nil
}

func (r *fakeRunner) did() (resets string, reboots int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.resets, " "), r.reboots
}

func (r *fakeRunner) set(f func(*fakeRunner)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
}

// A bench is an agent on fakes, in a bubble whose time stands still while all wait.
type bench struct {
	t      *testing.T
	dir    string
	hw     *fakeHardware
	kernel *fakeKernel
	events chan DriverEvent
	out    *fakeOutbox
	permit *fakePermits
	runner *fakeRunner
	asides []Aside
	boot   atomic.Pointer[string]
	start  time.Time
	agent  *Agent
	ended  chan error
	stop   context.CancelFunc
}

func newBench(t *testing.T) *bench {
	b := &bench{
		t: t, dir: t.TempDir(), hw: &fakeHardware{snap: wellSnapshot()}, kernel: newFakeKernel(), events: make(chan DriverEvent, 16), out: &fakeOutbox{},
		permit: &fakePermits{}, runner: &fakeRunner{}, start: time.Now().Add(-time.Hour),
	}
	b.boots("boot-1")
	return b
}

// boots gives the node a boot id.
func (b *bench) boots(id string) { b.boot.Store(&id) }

// run starts the agent and lets it settle.
func (b *bench) run() {
	b.t.Helper()
	a, err := New(Config{
		Node: "n1", Version: "test", StateDir: b.dir, BootID: func() (string, error) { return *b.boot.Load(), nil },
		Clock: func() time.Duration { return time.Since(b.start) }, Prober: b.hw, Asides: b.asides, Kernel: b.kernel, Events: b.events, Outbox: b.out, Permit: b.permit, Runner: b.runner,
		Verify: func(g wire.GrantedCertificate, _ map[string][]byte) error {
			if g.KeyID == "bad" {
				return errors.New("unknown key")
			}
			return nil
		},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	b.agent, b.stop, b.ended = a, cancel, make(chan error, 1)
	ended := b.ended
	go func() { ended <- a.Run(ctx) }()
	synctest.Wait()
}

// end stops the agent and returns what Run returned.
func (b *bench) end() error {
	b.stop()
	return <-b.ended
}

// restart stops the agent and starts it again on the same state directory. The kernel log is read anew from its start.
func (b *bench) restart() {
	b.t.Helper()
	if err := b.end(); err != nil {
		b.t.Fatal(err)
	}
	b.kernel.mu.Lock()
	b.kernel.at = 0
	b.kernel.mu.Unlock()
	b.run()
}

// wait lets time pass.
func (b *bench) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// desired is a desired state that acts, with a certificate of the serial; 0: none.
func (b *bench) desired(version uint64, serial uint64) wire.Desired {
	p := policy.Default()
	p.Mode, p.Version = policy.Act, 1
	d := wire.Desired{
		Version: version, Term: 1, Node: "n1", State: "certified", Managed: true, Policy: p,
		Expected: &checks.Inventory{Node: "n1", Driver: "550.1", GPUs: wellGPUs()},
	}
	if serial > 0 {
		d.Certificate = &wire.GrantedCertificate{
			Certificate: certificate.Certificate{
				Serial: serial, Node: "n1", GPUs: []string{"GPU-a", "GPU-b"}, Level: checks.Quick, Driver: "550.1", BootID: *b.boot.Load(),
			},
			RemainingSeconds: 3600, GraceRemainingSeconds: 7200,
		}
	}
	return d
}

func (b *bench) desire(d wire.Desired) {
	b.t.Helper()
	if err := b.agent.Desire(b.t.Context(), d); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

// prolog asks as a job on GPU 0 does.
func (b *bench) prolog() Reply {
	b.t.Helper()
	return b.agent.Hook(b.t.Context(), NewHookRequest(Prolog, map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0", "SLURM_JOB_USER": "ann"}))
}

// outcomes counts the prologs so far by outcome.
func (b *bench) outcomes() map[Outcome]uint64 {
	b.t.Helper()
	st, err := b.agent.Stats(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[Outcome]uint64{}
	for k, n := range st.Hooks {
		if k.Hook == Prolog {
			out[k.Outcome] = n
		}
	}
	return out
}

func (b *bench) status() Status {
	b.t.Helper()
	st, err := b.agent.Status(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return st
}

const (
	lineXID79 = "NVRM: Xid (PCI:0000:5e:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
	lineXID31 = "NVRM: Xid (PCI:0000:3b:00): 31, pid=4242, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS"
)
