package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/embedded"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// etcd is one server for all stories; each has a prefix of its own.
var etcd = sync.OnceValues(func() (*embedded.Server, error) {
	return embedded.Start(context.Background(), embedded.Config{Dir: etcdDir, Logger: quietLog()})
})

var etcdDir string

func TestMain(m *testing.M) {
	var err error
	if etcdDir, err = os.MkdirTemp("", "assay"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(etcdDir) // the server ends with the process
	os.Exit(code)
}

func quietLog() *slog.Logger {
	if os.Getenv("ASSAY_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

// A plant is one simulated site: Slurm with its nodes, agents, and the pager.
type plant struct {
	mu     sync.Mutex
	nodes  map[string]*slurm.Node
	jobs   []slurm.Job
	log    []string // what changed in Slurm, in order
	boots  map[string]int
	pages  []string
	down   bool
	refuse error // what a drain is answered
}

func newPlant(names ...string) *plant {
	p := &plant{nodes: map[string]*slurm.Node{}, boots: map[string]int{}}
	for _, n := range names {
		p.nodes[n] = &slurm.Node{Name: n, State: "IDLE", GPUs: 8}
	}
	return p
}

func (p *plant) bootID(node string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%s-boot%d", node, p.boots[node])
}

func (p *plant) changes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

var errDown = &slurm.UnavailableError{Verb: "test", Msg: "Connection refused"}

func (p *plant) Nodes(context.Context) ([]slurm.Node, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return nil, errDown
	}
	var out []slurm.Node
	for _, name := range sortedKeys(p.nodes) {
		n := *p.nodes[name]
		n.Flags = slices.Clone(n.Flags)
		out = append(out, n)
	}
	return out, nil
}

func (p *plant) Jobs(context.Context) ([]slurm.Job, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return nil, errDown
	}
	return slices.Clone(p.jobs), nil
}

func (p *plant) Leaves(context.Context) (map[string]string, error) { return nil, nil }

func (p *plant) Drain(_ context.Context, orders []slurm.DrainOrder) []slurm.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []slurm.Result
	for _, o := range orders {
		n := p.nodes[o.Node]
		r := slurm.Result{Node: o.Node, Reason: o.Reason}
		switch {
		case p.down:
			r.Err = errDown
		case p.refuse != nil:
			r.Err = p.refuse
		case !n.Drained():
			n.Flags, n.Reason, n.ReasonUser, n.ReasonTime = append(n.Flags, slurm.FlagDrain), o.Reason, "assay", noon
			p.log = append(p.log, "drain "+o.Node)
		case n.Reason != o.Reason:
			r.Err = &slurm.ChangedError{Verb: "drain", Target: o.Node, What: n.Reason}
		}
		out = append(out, r)
	}
	return out
}

func (p *plant) SetReason(_ context.Context, node, reason string, _ *slurm.Expect) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nodes[node].Reason != reason {
		p.nodes[node].Reason = reason
		p.log = append(p.log, "reason "+node)
	}
	return nil
}

func (p *plant) Resume(_ context.Context, node string, e slurm.Expect) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[node]
	switch {
	case p.down:
		return errDown
	case !n.Drained() || n.Reason != e.Reason:
		return &slurm.ChangedError{Verb: "resume", Target: node, What: n.Reason}
	}
	n.Flags, n.Reason, n.ReasonUser = nil, "", ""
	p.log = append(p.log, "resume "+node)
	return nil
}

func (p *plant) Reboot(_ context.Context, node string, _ time.Time, _ slurm.Expect) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return errDown
	}
	p.boots[node]++
	p.log = append(p.log, "reboot "+node)
	return nil
}

func (p *plant) Requeue(_ context.Context, job string, _ int) error { return p.job("requeue", job) }
func (p *plant) Cancel(_ context.Context, job string, _ int) error  { return p.job("cancel", job) }
func (p *plant) Release(_ context.Context, job string, _ int) error { return p.job("release", job) }

func (p *plant) job(verb, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, verb+" "+id)
	return nil
}

func (p *plant) Page(_ context.Context, node, reason, _ string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages = append(p.pages, reason+" "+node)
	return nil
}

// A site is a running coordinator over a plant.
type site struct {
	*plant
	t      testing.TB
	coord  *Coordinator
	stop   func()
	st     *store.Store
	prefix string
}

// startSite runs a coordinator with its own prefix in the shared etcd. Wrap may put faults in front of the store.
func startSite(t testing.TB, p *plant, prefix string, wrap func(store.KV) store.KV) *site {
	t.Helper()
	return startSiteWith(t, p, prefix, wrap, func(*Config) {})
}

// startSiteWith lets the test change the configuration.
func startSiteWith(t testing.TB, p *plant, prefix string, wrap func(store.KV) store.KV, change func(*Config)) *site {
	t.Helper()
	srv, err := etcd()
	if err != nil {
		t.Fatal(err)
	}
	pol := acting()
	pol.Guard.FleetHourShare, pol.Guard.FleetDayShare, pol.Guard.ReasonShare, pol.Guard.LeafHourShare = 1, 1, 1, 1
	pol.Guard.StormNodes = 1000
	pol.Lifecycle.SlurmInterval = policy.Duration(100 * time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	var st *store.Store
	for { // the faults of a test may hit the first read too
		if st, err = store.Open(ctx, store.Config{Endpoints: srv.Endpoints, Prefix: prefix, Wrap: wrap, Logger: quietLog()}); err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	s := &site{plant: p, t: t, st: st, prefix: prefix}
	cfg := Config{
		Name: "ctl", URL: "https://127.0.0.1:7420", Fleet: "test", Store: st, Alone: true, Lease: 3 * time.Second, Policy: &pol, Pager: p, Log: quietLog(),
		Slurm:   func(func() error) Slurm { return p },
		Metrics: func(f func() api.Snapshot) *api.Metrics { return api.NewMetrics("test", f) },
	}
	change(&cfg)
	s.coord = New(cfg, func() {})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.coord.Run(ctx)
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		_ = st.Close()
	})
	t.Cleanup(s.stop)
	return s
}

// reader is a connection of the test's own, which no fault touches.
func (s *site) reader() *store.Store {
	s.t.Helper()
	srv, err := etcd()
	if err != nil {
		s.t.Fatal(err)
	}
	st, err := store.Open(context.Background(), store.Config{Endpoints: srv.Endpoints, Prefix: s.prefix, Logger: quietLog()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = st.Close() })
	return st
}

// try repeats what a client would repeat until it works: a leader may be gone for a moment.
func (s *site) try(what string, f func(context.Context) error) {
	s.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := f(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *site) inventory(node string) checks.Inventory {
	inv := checks.Inventory{Node: node, BootID: s.bootID(node), NodeSerial: "SN-" + node, Driver: "550.54.15"}
	for i := range 8 {
		inv.GPUs = append(inv.GPUs, checks.GPU{Node: node, UUID: fmt.Sprintf("GPU-%s-%d", node, i), Index: i, Name: "H100"})
	}
	return inv
}

// report sends a report as an agent does: the same one again until it is answered.
func (s *site) report(r checks.Report) {
	s.t.Helper()
	if r.BootID == "" {
		r.BootID = s.bootID(r.Node)
	}
	r.Inventory = s.inventory(r.Node)
	s.try("report", func(ctx context.Context) error { _, err := s.coord.Report(ctx, r); return err })
}

func (s *site) enrol(node string, adopt bool) {
	s.t.Helper()
	s.try("enrol "+node, func(ctx context.Context) error {
		tokens, err := s.coord.Tokens(ctx, "root", wire.EnrolAsk{Nodes: []string{node}, Adopt: adopt})
		if err != nil {
			return err
		}
		tok, err := authority.ParseToken(tokens[0].Token)
		if err != nil {
			return err
		}
		csr, _, err := authority.NewRequest(node)
		if err != nil {
			return err
		}
		_, err = s.coord.Enroll(ctx, wire.Enroll{Node: node, Secret: tok.Secret, CSR: csr})
		return err
	})
}

// agent plays a node's agent until the site stops: it heeds its desired state and answers each effect once.
func (s *site) agent(node string) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	s.t.Cleanup(func() { cancel(); wg.Wait() })
	wg.Add(1)
	go func() {
		defer wg.Done()
		var after uint64
		boot := ""
		for ctx.Err() == nil {
			if b := s.bootID(node); b != boot {
				if _, err := s.coord.Report(ctx, checks.Report{ID: "boot " + b, Node: node, BootID: b, Why: checks.WhyBackground, Inventory: s.inventory(node)}); err == nil {
					boot = b
				}
			}
			wait, stop := context.WithTimeout(ctx, 200*time.Millisecond)
			d, err := s.coord.Desired(wait, node, after)
			stop()
			if err != nil {
				pause(ctx, 20*time.Millisecond)
				after = 0 // reconnect: whole again
				continue
			}
			after = d.Version
			for _, e := range d.Effects {
				s.carry(ctx, node, e)
			}
		}
	}()
}

func (s *site) carry(ctx context.Context, node string, e wire.Effect) {
	switch e.Kind {
	case lifecycle.EffectScreen:
		var level checks.Level
		if err := level.UnmarshalText([]byte(e.Args["level"])); err != nil {
			s.t.Error(err)
		}
		_, _ = s.coord.Report(ctx, checks.Report{
			ID: "screen " + e.ID, Node: node, BootID: s.bootID(node), Why: checks.WhyScreen, Screen: e.ID, Suite: level, Verdict: checks.Pass,
			Tested: []string{"inventory"}, Inventory: s.inventory(node),
		})
	default:
		_ = s.coord.EffectResult(ctx, wire.EffectResult{ID: e.ID, Node: node, BootID: s.bootID(node), Outcome: "done", Refs: map[string]string{"a": "b"}})
	}
}

// until waits for a condition on the node.
func (s *site) until(node, what string, ok func(wire.Node) bool) wire.Node {
	s.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		ns, err := s.coord.Nodes(context.Background(), []string{node})
		if err == nil && ok(ns[0]) {
			return ns[0]
		}
		if time.Now().After(deadline) {
			h, _ := s.coord.NodeHistory(context.Background(), node)
			b, _ := json.MarshalIndent(h, "", " ")
			s.t.Fatalf("%s: not %s in time: %+v, %v\n%s", node, what, ns, err, b)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// healthy is certified, in service, and nothing left to do.
func healthy(n wire.Node) bool {
	return n.State == string(lifecycle.Certified) && n.Certificate != nil && n.Case == "" && len(n.Effects) == 0 && !n.Suspended
}

var fellOff = checks.Finding{
	Check: "xid", Code: 79, Verdict: checks.Fail, Hard: true, Action: checks.Reboot, Reason: "GPU has fallen off the bus",
	Subject: checks.Subject{Kind: checks.KindGPU, GPUUUID: "GPU-gpu001-3"},
}

// quarantineAndResume is the main story: a certified node loses a GPU, is drained, rebooted, screened and resumed.
func (s *site) quarantineAndResume(node string) {
	s.t.Helper()
	s.enrol(node, true)
	s.agent(node)
	s.report(checks.Report{ID: "prolog", Node: node, Why: checks.WhyProlog, Suite: checks.Quick, Verdict: checks.Pass, Tested: []string{"inventory"}})
	first := s.until(node, "certified", healthy)
	f := fellOff
	f.BootID = s.bootID(node)
	s.report(checks.Report{ID: "fault", Node: node, BootID: f.BootID, Why: checks.WhyBackground, Verdict: checks.Fail, Findings: []checks.Finding{f}})
	last := s.until(node, "certified again", func(n wire.Node) bool {
		return healthy(n) && n.Certificate.Serial > first.Certificate.Serial && n.BootID == s.bootID(node)
	})
	if last.Certificate.Level < checks.Standard {
		s.t.Errorf("resumed on a %s certificate; the case demands standard", last.Certificate.Level)
	}
	s.t.Log(strings.Join(s.changes(), ", "))
}

// checkEnd checks what must hold at the end of the main story, however often the store failed on the way.
func (s *site) checkEnd(node string) {
	s.t.Helper()
	if got, want := s.changes(), []string{"drain " + node, "reboot " + node, "resume " + node}; !slices.Equal(got, want) {
		s.t.Errorf("Slurm saw %v, want %v", got, want)
	}
	cases, err := s.coord.Cases(context.Background(), false)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(cases) != 1 || cases[0].Closed.IsZero() || cases[0].Cause != "xid 79" || len(cases[0].Evidence) == 0 {
		s.t.Errorf("cases %+v, want one, closed, of xid 79, with evidence", cases)
	}
	clean := s.reader()
	stored, _, err := clean.List(context.Background(), keyEffects)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(stored) != 0 {
		s.t.Errorf("%d effects are still in etcd", len(stored))
	}
	cert, err := clean.Get(context.Background(), keyCerts+node)
	if err != nil || cert.ModRevision == 0 {
		s.t.Errorf("no certificate in etcd: %v", err)
	}
}

func TestQuarantineAndResume(t *testing.T) {
	s := startSite(t, newPlant("gpu001"), "/story/", nil)
	s.quarantineAndResume("gpu001")
	s.checkEnd("gpu001")
}

// A certificate is gone from etcd in the same transaction that records the fault: no reader ever sees a node that is
// draining and certified.
func TestRevocationAndStateAreOne(t *testing.T) {
	s := startSite(t, newPlant("gpu001"), "/one/", nil)
	s.enrol("gpu001", true)
	s.report(checks.Report{ID: "prolog", Node: "gpu001", Why: checks.WhyProlog, Suite: checks.Quick, Verdict: checks.Pass, Tested: []string{"inventory"}})
	s.until("gpu001", "certified", healthy)
	s.report(checks.Report{ID: "fault", Node: "gpu001", Why: checks.WhyBackground, Verdict: checks.Fail, Findings: []checks.Finding{fellOff}})
	node, err := s.st.Get(context.Background(), keyNodes+"gpu001")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := s.st.Get(context.Background(), keyCerts+"gpu001")
	if err != nil {
		t.Fatal(err)
	}
	var n lifecycle.Node
	if err := json.Unmarshal(node.Value, &n); err != nil {
		t.Fatal(err)
	}
	if cert.ModRevision != 0 || n.Certificate != nil || n.State == lifecycle.Certified {
		t.Errorf("after the answer to the report: state %s, certificate %v, certs/ key at %d", n.State, n.Certificate, cert.ModRevision)
	}
}

// A token works once, for its own node, in its time.
func TestTokenWorksOnce(t *testing.T) {
	s := startSite(t, newPlant("gpu001"), "/token/", nil)
	var text string
	s.try("token", func(ctx context.Context) error {
		ts, err := s.coord.Tokens(ctx, "root", wire.EnrolAsk{Nodes: []string{"gpu001"}})
		if err == nil {
			text = ts[0].Token
		}
		return err
	})
	tok, err := authority.ParseToken(text)
	if err != nil {
		t.Fatal(err)
	}
	csr, _, err := authority.NewRequest("gpu001")
	if err != nil {
		t.Fatal(err)
	}
	var refused *authority.TokenError
	if _, err := s.coord.Enroll(context.Background(), wire.Enroll{Node: "gpu002", Secret: tok.Secret, CSR: csr}); !errors.As(err, &refused) {
		t.Errorf("another node's token: %v, want a refusal", err)
	}
	if _, err := s.coord.Enroll(context.Background(), wire.Enroll{Node: "gpu001", Secret: tok.Secret, CSR: csr}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.coord.Enroll(context.Background(), wire.Enroll{Node: "gpu001", Secret: tok.Secret, CSR: csr}); !errors.As(err, &refused) {
		t.Errorf("the same token again: %v, want a refusal", err)
	}
}
