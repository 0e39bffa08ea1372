package coordinator

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/guard"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// read runs f over the state, which it must not change or keep.
func (c *Coordinator) read(f func(*lead, *state, time.Time) error) error {
	l, err := c.leading()
	if err != nil {
		return err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return f(l, l.st, leaderNow(l.st))
}

// Fleet implements api.Fleet.
func (c *Coordinator) Fleet(_ context.Context) (out wire.Fleet, err error) {
	err = c.read(func(l *lead, s *state, now time.Time) error {
		out = wire.Fleet{
			Nodes: len(s.nodes), ByState: map[string]int{}, Mode: string(s.policy.Mode), Frozen: s.guard.Freezer != nil,
			Leader: c.cfg.Name, Term: l.term.Number(),
		}
		for _, n := range s.nodes {
			out.ByState[string(n.State)]++
			out.GPUs += len(n.Inventory.GPUs)
			valid := certifiedNow(n, now)
			if valid {
				out.Certified++
			}
			if n.Lost {
				out.Lost++
			}
			if n.Marked(lifecycle.MarkHeldBack, now) {
				out.HeldBack++
			}
			if n.Case != nil {
				out.OpenCases++
			}
			if n.State != lifecycle.Retired && (!valid || n.Lost || n.State != lifecycle.Certified || len(n.Observed) > 0) {
				out.Attention = append(out.Attention, l.wireNode(n, now))
			}
		}
		slices.SortFunc(out.Attention, func(a, b wire.Node) int {
			return cmp.Or(cmp.Compare(urgency(b), urgency(a)), a.Since.Compare(b.Since), strings.Compare(a.Name, b.Name))
		})
		return nil
	})
	return out, err
}

// urgency orders nodes for the person on call: what waits for a person first, then what is out, then what is on its way.
func urgency(n wire.Node) int {
	u := map[string]int{
		string(lifecycle.Withheld): 6, string(lifecycle.Quarantined): 5, string(lifecycle.Draining): 4, string(lifecycle.Remediating): 4,
		string(lifecycle.Suspect): 3, string(lifecycle.RMA): 2, string(lifecycle.Screening): 2, string(lifecycle.Enrolled): 1,
	}[n.State]
	if n.Lost {
		u += 10
	}
	if n.Owner != "" && n.Owner != "assay" {
		u += 5
	}
	return u
}

func certifiedNow(n lifecycle.Node, now time.Time) bool {
	return n.Certificate != nil && !n.Suspended && certificate.Holds(*n.Certificate, now)
}

// Nodes implements api.Fleet.
func (c *Coordinator) Nodes(_ context.Context, names []string) (out []wire.Node, err error) {
	err = c.read(func(l *lead, s *state, now time.Time) error {
		if len(names) == 0 {
			names = sortedKeys(s.nodes)
		}
		out = make([]wire.Node, 0, len(names))
		for _, name := range names {
			n, ok := s.nodes[name]
			if !ok {
				return &UnknownNodeError{name}
			}
			out = append(out, l.wireNode(n, now))
		}
		return nil
	})
	return out, err
}

// wireNode is a node for people. The caller holds l.mu.
func (l *lead) wireNode(n lifecycle.Node, now time.Time) wire.Node {
	w := wire.Node{
		Name: n.Name, State: string(n.State), Since: n.Since, Marks: marks(n, now), Lost: n.Lost, Reasons: n.Reasons, Observed: n.Observed,
		Certificate: n.Certificate, Suspended: n.Suspended, BootID: n.BootID, Driver: n.Driver, GPUs: len(n.Inventory.GPUs), Product: skuOf(n), Leaf: n.Leaf,
		Deadline: n.Deadline, Owner: lifecycle.Owner(n), Effects: wirePending(l.st.effectsOf(n.Name)),
	}
	for _, h := range n.Holds {
		w.Holds = append(w.Holds, wire.Hold{Owner: h.Owner, Reason: h.Reason, Expires: h.Expires})
	}
	if n.Case != nil {
		w.Case = n.Case.ID
	}
	if b, ok := l.beats.of(n.Name); ok {
		w.LastSeen = b.at.Round(0).UTC()
	}
	if v, ok := l.slurm.of(n.Name); ok {
		w.Slurm = wireSlurm(v)
	}
	return w
}

// Explain implements api.Fleet: one screen on why a node is where it is.
func (c *Coordinator) Explain(_ context.Context, node string) (out wire.Explanation, err error) {
	err = c.read(func(l *lead, s *state, now time.Time) error {
		n, ok := s.nodes[node]
		if !ok {
			return &UnknownNodeError{node}
		}
		out.Node = l.wireNode(n, now)
		out.Why, out.Next = lifecycle.Explain(n, now)
		out.HookSays = lifecycle.HookSays(n, now)
		if n.Case != nil {
			k := s.cases[n.Case.ID]
			out.Case = &k
		}
		of := filter(l.history, func(h wire.HistoryEntry) bool { return h.Node == node })
		out.History = of[max(0, len(of)-12):]
		return nil
	})
	return out, err
}

// Cases implements api.Fleet: newest first.
func (c *Coordinator) Cases(_ context.Context, openOnly bool) (out []wire.Case, err error) {
	err = c.read(func(_ *lead, s *state, _ time.Time) error {
		out = []wire.Case{}
		for _, k := range s.cases {
			if !openOnly || k.Closed.IsZero() {
				k.Timeline = nil // case show has it
				out = append(out, k)
			}
		}
		slices.SortFunc(out, func(a, b wire.Case) int { return cmp.Or(b.Opened.Compare(a.Opened), strings.Compare(a.ID, b.ID)) })
		return nil
	})
	return out, err
}

// Case implements api.Fleet: one case with its timeline.
func (c *Coordinator) Case(_ context.Context, id string) (out wire.Case, err error) {
	err = c.read(func(l *lead, s *state, _ time.Time) error {
		k, ok := s.cases[id]
		if !ok {
			return unknownCase(id)
		}
		out = k
		out.Timeline = wholeTimeline(k.Timeline, l.timeline(id))
		for _, name := range sortedKeys(k.Evidence) {
			if c.cfg.Evidence == nil || !c.cfg.Evidence.Has(k.Evidence[name]) {
				out.OnNode = append(out.OnNode, name)
			}
		}
		return nil
	})
	return out, err
}

// Certificates implements api.Fleet.
func (c *Coordinator) Certificates(_ context.Context) (out []certificate.Certificate, err error) {
	err = c.read(func(_ *lead, s *state, _ time.Time) error {
		out = []certificate.Certificate{}
		for _, name := range sortedKeys(s.nodes) {
			if k := s.nodes[name].Certificate; k != nil {
				out = append(out, *k)
			}
		}
		return nil
	})
	return out, err
}

// Certificate implements api.Fleet.
func (c *Coordinator) Certificate(_ context.Context, node string) (out certificate.Certificate, err error) {
	err = c.read(func(_ *lead, s *state, _ time.Time) error {
		n, ok := s.nodes[node]
		switch {
		case !ok:
			return &UnknownNodeError{node}
		case n.Certificate == nil:
			return &notFoundError{"certificate of " + node, "`assay node explain " + node + "` says why it has none"}
		}
		out = *n.Certificate
		return nil
	})
	return out, err
}

// snapshot is the state in numbers, for Prometheus.
func (c *Coordinator) snapshot() api.Snapshot {
	out := api.Snapshot{Nodes: map[string]int{}, EffectsPending: map[string]int{}}
	_, out.Leader, out.Term = c.Leader()
	if p := c.space.Load(); p != nil {
		out.StoreUsed, out.StoreSize, out.StoreQuota, out.StoreFull = p.Used, p.Size, p.Quota, p.Full
	}
	_ = c.read(func(l *lead, s *state, now time.Time) error {
		for _, n := range s.nodes {
			out.Nodes[string(n.State)]++
			if n.Lost {
				out.Lost++
			}
			if n.Marked(lifecycle.MarkHeldBack, now) {
				out.HeldBack++
			}
			if certifiedNow(n, now) {
				out.Certificates++
			}
			if n.Case != nil {
				out.CasesOpen++
			}
		}
		for _, e := range s.effects {
			out.EffectsPending[e.Kind]++
		}
		shown := guard.New(s.policy.Guard, s.census(), s.guard).Show(now)
		out.Frozen, out.Storms, out.Budgets = shown.Freezer != nil, len(shown.Storms), wireBudgets(shown.Budgets)
		out.SlurmRead = l.slurm.readAt()
		out.DrillEvery, out.DrillFailed, out.DrillPassed = s.policy.Drill.Every.D(), s.drill.Outcome == wire.DrillFailed, s.drill.LastPassed
		return nil
	})
	return out
}
