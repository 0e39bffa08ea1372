// Package coordinator is the control plane's middle: the apply loop, which is the only writer. Events and orders come
// in; lifecycle.Step decides; writes, history and pending effects go to etcd in one fenced transaction; effects are
// then carried out in order and ticked off. One process leads; the others wait to.
package coordinator

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/cases"
	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/store"
)

// Config says what a Coordinator works with.
type Config struct {
	Name       string   // this process among its peers
	URL        string   // where agents and operators reach it
	Peers      []string // URLs of the other control hosts: agents are told them all, so that they find a new leader
	Fleet      string   // the fleet's name, in the authority's certificate
	Store      *store.Store
	OwnStore   bool                           // the etcd that Store is connected to is this process's own: it may be defragmented
	Alone      bool                           // only this process can reach the store (embedded etcd): whoever led before is dead
	Lease      time.Duration                  // how long a dead leader keeps others out
	SpaceEvery time.Duration                  // between looks at the store's room; 0: 15 s
	Settle     time.Duration                  // wait before the first effect of a term; see DESIGN section 4
	Slurm      func(fence func() error) Slurm // nil: no Slurm; drains are then ours alone. fence fails once this term is over
	Policy     *policy.Policy                 // put in force when the store holds none; nil: the built-in one
	Metrics    func(snapshot func() api.Snapshot) *api.Metrics
	Topology   string          // the site's topology.conf, for the built-in scheduler; empty: leaves as enrolment named them
	Pager      Pager           // nil: pages are history, metric and log only
	Power      Power           // nil: no power-cycle hook; that rung falls through to a person
	Evidence   *cases.Evidence // of cases, on this host's disk; nil: it stays on the nodes
	Tickets    []TicketHook    // told of every change of a ticket, until they take it
	Log        *slog.Logger
}

// A Pager sends a page to people.
type Pager interface {
	Page(ctx context.Context, node, reason, text string) error
}

// A Power cycles a node's power by the site's own means.
type Power interface {
	Cycle(ctx context.Context, node string) error
}

// A TicketHook tells the site's own ticket system how an RMA ticket stands.
type TicketHook interface {
	Tell(ctx context.Context, t rma.Ticket) error
}

// A Coordinator takes part in the election and, while it leads, runs the fleet.
type Coordinator struct {
	cfg     Config
	metrics *api.Metrics
	lead    atomic.Pointer[lead]         // nil while another leads
	leader  atomic.Pointer[store.Leader] // who leads, as etcd said last
	space   atomic.Pointer[store.Space]  // of the store, as looked at last
	onEnd   func()                       // called when a term ends, before the next campaign
}

// New returns a Coordinator that does nothing yet. onEnd is called each time a term of this process ends: the API ends
// its streams then.
func New(cfg Config, onEnd func()) *Coordinator {
	c := &Coordinator{cfg: cfg, onEnd: onEnd}
	c.metrics = cfg.Metrics(c.snapshot)
	return c
}

// urls are the URLs of all control hosts, this one first.
func (c Config) urls() []string {
	out := []string{c.URL}
	for _, u := range c.Peers {
		if !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	return out
}

// Metrics are the counters of this process.
func (c *Coordinator) Metrics() *api.Metrics { return c.metrics }

// Run campaigns and leads, over and over, until ctx ends. Its error is ctx's cause.
func (c *Coordinator) Run(ctx context.Context) error {
	go c.follow(ctx)
	go c.keepRoom(ctx)
	if c.cfg.Alone {
		// The lock on the data directory says that whoever led is dead.
		if err := c.cfg.Store.Depose(ctx); err != nil {
			c.cfg.Log.Warn("the last term could not be ended early", "err", err)
		}
	}
	for ctx.Err() == nil {
		term, err := c.cfg.Store.Campaign(ctx, c.cfg.Name, c.cfg.URL, c.cfg.Lease)
		if err != nil {
			if ctx.Err() == nil {
				c.cfg.Log.Warn("campaign broke off", "err", err)
				pause(ctx, time.Second)
			}
			continue
		}
		c.cfg.Log.Info("leading", "term", term.Number())
		err = c.serve(ctx, term)
		var newer *NewerDataError
		resignCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		if rerr := term.Resign(resignCtx); rerr != nil {
			c.cfg.Log.Warn("lease not given back; it ends by itself", "err", rerr)
		}
		cancel()
		if errors.As(err, &newer) {
			return err
		}
		if ctx.Err() == nil {
			c.cfg.Log.Warn("term ended", "term", term.Number(), "err", err)
			pause(ctx, 200*time.Millisecond)
		}
	}
	return context.Cause(ctx)
}

// serve leads for one term. It returns when the term or ctx ends, with all that the term started stopped.
func (c *Coordinator) serve(ctx context.Context, term *store.Term) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-term.Done():
			cancel(errors.Join(errDeposed, term.Err()))
		case <-ctx.Done():
		}
	}()
	l, err := newLead(ctx, c.cfg, c.metrics, term)
	if err != nil {
		return err
	}
	c.lead.Store(l)
	defer func() {
		c.lead.Store(nil)
		c.onEnd()
	}()
	return l.run(ctx)
}

// follow keeps track of who leads.
func (c *Coordinator) follow(ctx context.Context) {
	for ld := range c.cfg.Store.WatchLeader(ctx) {
		c.leader.Store(&ld)
	}
}

// Leader implements api.Leadership.
func (c *Coordinator) Leader() (url string, mine bool, term int64) {
	if l := c.lead.Load(); l != nil && l.term.Valid() {
		return c.cfg.URL, true, l.term.Number()
	}
	if ld := c.leader.Load(); ld != nil && ld.Name != c.cfg.Name {
		return ld.URL, false, ld.Term
	}
	return "", false, 0
}

// leading returns the lead, or an error that says who leads.
func (c *Coordinator) leading() (*lead, error) {
	if l := c.lead.Load(); l != nil && l.term.Valid() {
		return l, nil
	}
	return nil, errDeposed
}

// Authority waits until the fleet's certificate authority stands in the store, made by the first leader, and loads it.
func (c *Coordinator) Authority(ctx context.Context) (*authority.Authority, error) {
	for {
		m, ok, err := loadAuthority(ctx, c.cfg.Store)
		if err == nil && ok {
			return authority.Load(m)
		}
		if err != nil {
			c.cfg.Log.Warn("certificate authority not read yet", "err", err)
		}
		if !pause(ctx, 100*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
	}
}

// pause waits, and reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// signer is the key that node certificates are signed with.
type signer struct {
	ID   string             `json:"id"`
	Pub  ed25519.PublicKey  `json:"pub"`
	Priv ed25519.PrivateKey `json:"priv"`

	Since time.Time `json:"since,omitzero"` // zero: the fleet's first
}
