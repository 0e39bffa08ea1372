// Package apitest has a small control plane in memory, for tests of what talks to the API: the server itself, the Go
// client, the command line, the agent's stream. It works: what is written through one endpoint is read through another.
// It is no model of the lifecycle: an order puts a node where it says, and no more.
package apitest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// A Plane is a control plane in memory. The zero value is not ready: see New.
type Plane struct {
	CA  *authority.Authority
	Now func() time.Time

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change

	leader string // URL of another leader; "" while this one leads
	silent bool   // no leader at all

	nodes    map[string]*wire.Node
	versions map[string]uint64
	cases    []wire.Case
	history  []wire.HistoryEntry
	head     string // hash of the last entry
	pol      policy.Policy
	rollout  wire.Rollout
	Shown    []policy.Shown // what the nodes show; set before use
	guard    wire.Guard
	tokens   map[string]authority.TokenRecord
	beats    map[string]wire.Heartbeat
	reports  map[string]checks.Report
	results  []wire.EffectResult
	refuse   bool // permits are refused
	urls     []string
	jobs     []wire.Job
	batches  map[string]int64 // by key and line: the job
	rules    rules.File
	drill    wire.Drill
	gangs    []wire.GangStatus
}

// New makes an empty plane with an authority of its own.
func New(now func() time.Time) (*Plane, error) {
	m, err := authority.New("apitest", time.Now())
	if err != nil {
		return nil, err
	}
	ca, err := authority.Load(m)
	if err != nil {
		return nil, err
	}
	return &Plane{
		CA: ca, Now: now, changed: make(chan struct{}), nodes: map[string]*wire.Node{}, versions: map[string]uint64{}, pol: policy.Default(),
		guard:  wire.Guard{Budgets: []wire.Budget{{Scope: "fleet hour", Limit: 1}}},
		tokens: map[string]authority.TokenRecord{}, beats: map[string]wire.Heartbeat{}, reports: map[string]checks.Report{},
		urls: []string{"https://localhost:7420"},
	}, nil
}

// Backend is the plane as the API asks for it.
func (p *Plane) Backend() api.Backend {
	return api.Backend{Agents: p, Fleet: p, Operators: p, Enroller: p, Policies: p, Guarder: guarder{p}, History: p, Leadership: p, Jobs: p, Rules: p, Auditor: p, Drills: p}
}

// Follow makes the plane a follower of the leader at url; "" makes it lead again.
func (p *Plane) Follow(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leader, p.silent = url, false
	p.wake()
}

// LoseLeader leaves the plane without any leader.
func (p *Plane) LoseLeader() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
	p.wake()
}

// RefusePermits makes the guard full.
func (p *Plane) RefusePermits() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = true
}

// Add puts nodes in, as they are.
func (p *Plane) Add(ns ...wire.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range ns {
		p.nodes[n.Name] = &n
		p.touch(n.Name)
	}
}

// AddCase puts a case in, as it is.
func (p *Plane) AddCase(c wire.Case) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cases = append(p.cases, c)
}

// SetGuard replaces what the guard shows.
func (p *Plane) SetGuard(g wire.Guard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.guard = g
}

// Record adds a history entry and gives it its cursor.
func (p *Plane) Record(e wire.HistoryEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record(e)
}

func (p *Plane) record(e wire.HistoryEntry) {
	if e.At.IsZero() {
		e.At = p.Now()
	}
	e.Cursor = fmt.Sprintf("%016x", len(p.history)+1)
	e = wire.Chained(p.head, e)
	p.head = e.Hash
	p.history = append(p.history, e)
	p.wake()
}

// touch gives a node's desired state a new version.
func (p *Plane) touch(node string) {
	p.versions[node]++
	p.wake()
}

func (p *Plane) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// await calls ready, with the lock held, now and after each change, until it says true or ctx ends.
func (p *Plane) await(ctx context.Context, ready func() bool) error {
	for {
		p.mu.Lock()
		if ready() {
			p.mu.Unlock()
			return nil
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Leader implements api.Leadership.
func (p *Plane) Leader() (url string, mine bool, term int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.silent:
		return "", false, 0
	case p.leader != "":
		return p.leader, false, 3
	}
	return p.urls[0], true, 3
}

// SetURLs says where the plane may be reached, first its own as leader.
func (p *Plane) SetURLs(urls ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.urls = urls
}

// Snapshot is the plane's state for metrics.
func (p *Plane) Snapshot() api.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := api.Snapshot{Nodes: map[string]int{}, Leader: p.leader == "" && !p.silent, Term: 3, Frozen: p.guard.Frozen, Budgets: p.guard.Budgets}
	for _, n := range p.nodes {
		s.Nodes[n.State]++
	}
	return s
}

// Fleet implements api.Fleet.
func (p *Plane) Fleet(context.Context) (wire.Fleet, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := wire.Fleet{ByState: map[string]int{}, Mode: string(p.pol.Mode), Frozen: p.guard.Frozen, Leader: p.urls[0], Term: 3}
	for _, n := range p.sorted() {
		f.Nodes++
		f.GPUs += n.GPUs
		f.ByState[n.State]++
		if n.Lost {
			f.Lost++
		}
		if slices.Contains(n.Marks, "held_back") {
			f.HeldBack++
		}
		if n.Certificate != nil && !n.Suspended && p.Now().Before(n.Certificate.Expires) {
			f.Certified++
		}
		if n.State != "certified" || n.Lost || len(n.Holds) > 0 {
			f.Attention = append(f.Attention, n)
		}
	}
	for _, c := range p.cases {
		if c.Closed.IsZero() {
			f.OpenCases++
		}
	}
	return f, nil
}

func (p *Plane) sorted() []wire.Node {
	ns := make([]wire.Node, 0, len(p.nodes))
	for _, n := range p.nodes {
		ns = append(ns, *n)
	}
	slices.SortFunc(ns, func(a, b wire.Node) int { return strings.Compare(a.Name, b.Name) })
	return ns
}

func unknownNode(name string) error {
	return api.Errorf(http.StatusNotFound, "node %s is not known", name).With("assay node list shows those that are")
}

// Nodes implements api.Fleet.
func (p *Plane) Nodes(_ context.Context, names []string) ([]wire.Node, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(names) == 0 {
		return p.sorted(), nil
	}
	var ns []wire.Node
	for _, name := range names {
		n := p.nodes[name]
		if n == nil {
			return nil, unknownNode(name)
		}
		ns = append(ns, *n)
	}
	return ns, nil
}

// NodeHistory implements api.Fleet.
func (p *Plane) NodeHistory(_ context.Context, node string) ([]wire.HistoryEntry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nodes[node] == nil {
		return nil, unknownNode(node)
	}
	es := []wire.HistoryEntry{}
	for _, e := range p.history {
		if e.Node == node {
			es = append(es, e)
		}
	}
	return es, nil
}

// Explain implements api.Fleet.
func (p *Plane) Explain(ctx context.Context, node string) (wire.Explanation, error) {
	es, err := p.NodeHistory(ctx, node)
	if err != nil {
		return wire.Explanation{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := *p.nodes[node]
	x := wire.Explanation{Node: n, Why: n.Reasons, History: es, HookSays: "exit 0: certificate serial 7 holds"}
	for _, c := range p.cases {
		if c.ID == n.Case {
			x.Case, x.Next = &c, c.Next
			x.HookSays = "exit 1: " + c.ID + " " + c.Cause
		}
	}
	return x, nil
}

// Cases implements api.Fleet.
func (p *Plane) Cases(_ context.Context, openOnly bool) ([]wire.Case, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cs := []wire.Case{}
	for _, c := range p.cases {
		if !openOnly || c.Closed.IsZero() {
			cs = append(cs, c)
		}
	}
	return cs, nil
}

// Case implements api.Fleet.
func (p *Plane) Case(_ context.Context, id string) (wire.Case, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.cases {
		if c.ID == id {
			return c, nil
		}
	}
	return wire.Case{}, api.Errorf(http.StatusNotFound, "case %s is not known", id)
}

// Certificates implements api.Fleet.
func (p *Plane) Certificates(context.Context) ([]certificate.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cs := []certificate.Certificate{}
	for _, n := range p.sorted() {
		if n.Certificate != nil {
			cs = append(cs, *n.Certificate)
		}
	}
	return cs, nil
}

// Certificate implements api.Fleet.
func (p *Plane) Certificate(_ context.Context, node string) (certificate.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[node]
	if n == nil {
		return certificate.Certificate{}, unknownNode(node)
	}
	if n.Certificate == nil {
		return certificate.Certificate{}, api.Errorf(http.StatusNotFound, "node %s holds no certificate", node).With("assay node explain " + node + " says why")
	}
	return *n.Certificate, nil
}

// Entries implements api.History.
func (p *Plane) Entries(ctx context.Context, after string, limit int, wait bool) ([]wire.HistoryEntry, error) {
	from := 0
	if after != "" {
		n, err := strconv.ParseInt(after, 16, 64)
		if err != nil {
			return nil, api.Errorf(http.StatusGone, "cursor %s is gone", after)
		}
		from = int(n)
	}
	var es []wire.HistoryEntry
	err := p.await(ctx, func() bool {
		es = slices.Clone(p.history[min(from, len(p.history)):])
		return len(es) > 0 || !wait
	})
	return es[:min(len(es), limit)], err
}

// Last implements api.History.
func (p *Plane) Last(_ context.Context, n int) ([]wire.HistoryEntry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.history[max(0, len(p.history)-max(n, 0)):]), nil
}
