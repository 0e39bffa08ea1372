package apitest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Order implements api.Operators.
func (p *Plane) Order(_ context.Context, by string, verb api.Verb, node string, v wire.NodeVerb) (wire.Node, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[node]
	if n == nil {
		return wire.Node{}, unknownNode(node)
	}
	from := n.State
	switch verb {
	case api.VerbDrain:
		n.State, n.Reasons, n.Owner = "draining", []string{v.Reason}, by
	case api.VerbResume:
		if n.Certificate == nil && v.AcceptRisk != "no-certificate" {
			return wire.Node{}, api.Errorf(http.StatusConflict, "resume %s: it holds no fresh certificate", node).
				With("let it be screened, or accept the risk with --accept-risk=no-certificate")
		}
		n.State, n.Reasons, n.Marks, n.Owner, n.Case = "certified", nil, nil, "", ""
	case api.VerbHold:
		n.Holds = append(n.Holds, wire.Hold{Owner: by, Reason: v.Reason, Expires: v.Until})
	case api.VerbUnhold:
		owner := v.Owner
		if owner == "" {
			owner = by
		}
		before := len(n.Holds)
		n.Holds = slices.DeleteFunc(n.Holds, func(h wire.Hold) bool { return h.Owner == owner })
		if len(n.Holds) == before {
			return wire.Node{}, api.Errorf(http.StatusConflict, "unhold %s: %s has no hold on it", node, owner)
		}
	case api.VerbRMA:
		if n.Case == "" {
			return wire.Node{}, api.Errorf(http.StatusConflict, "rma %s: it has no open case", node)
		}
		n.State, n.Certificate = "rma", nil
	case api.VerbRepair:
		if n.State != "rma" {
			return wire.Node{}, api.Errorf(http.StatusConflict, "repaired %s: no part of it is with the vendor", node)
		}
		n.State = "screening"
	case api.VerbRetire:
		n.State, n.Certificate, n.Case = "retired", nil, ""
	}
	if n.State != from {
		n.Since = p.Now()
	}
	p.record(wire.HistoryEntry{Node: node, Event: fmt.Sprintf("order_%s by=%s reason=%q", verb, by, v.Reason), From: from, To: n.State, By: by})
	p.touch(node)
	return *n, nil
}

// Policy implements api.Policies.
func (p *Plane) Policy(context.Context) (policy.Policy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pol, nil
}

// SetPolicy implements api.Policies.
func (p *Plane) SetPolicy(_ context.Context, by string, q policy.Policy) (policy.Policy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if fs := policy.Validate(q); len(fs) > 0 {
		return policy.Policy{}, api.Errorf(http.StatusBadRequest, "policy: %s: %s", fs[0].Path, fs[0].Message)
	}
	q.Version = p.pol.Version + 1
	p.pol = q
	p.record(wire.HistoryEntry{Event: fmt.Sprintf("policy version=%d", q.Version), By: by})
	for name := range p.nodes {
		p.touch(name)
	}
	return q, nil
}

// Rollout implements api.Policies.
func (p *Plane) Rollout(context.Context) (wire.Rollout, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rollout, nil
}

// RollOut implements api.Policies.
func (p *Plane) RollOut(_ context.Context, by string, ask wire.RolloutAsk) (wire.Rollout, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if fs := policy.Validate(ask.Policy); len(fs) > 0 {
		return wire.Rollout{}, api.Errorf(http.StatusBadRequest, "policy: %s: %s", fs[0].Path, fs[0].Message)
	}
	ask.Policy.Version = p.pol.Version + 1
	p.rollout = wire.Rollout{Policy: &ask.Policy, Share: ask.Share, By: by, Reason: ask.Reason, Since: p.Now()}
	if ask.After > 0 {
		p.rollout.Promote = p.Now().Add(ask.After.D())
	}
	for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
		if policy.InShare("policy", name, ask.Share) {
			p.rollout.Nodes = append(p.rollout.Nodes, name)
		}
	}
	p.record(wire.HistoryEntry{Event: fmt.Sprintf("policy_rollout version=%d", ask.Policy.Version), By: by})
	return p.rollout, nil
}

// Promote implements api.Policies.
func (p *Plane) Promote(ctx context.Context, by string, v wire.RolloutVerb) (policy.Policy, error) {
	return p.endRollout(by, v, "policy", true)
}

// Withdraw implements api.Policies.
func (p *Plane) Withdraw(ctx context.Context, by string, v wire.RolloutVerb) (policy.Policy, error) {
	return p.endRollout(by, v, "policy_withdrawn", false)
}

func (p *Plane) endRollout(by string, v wire.RolloutVerb, event string, promote bool) (policy.Policy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rollout.Policy == nil || p.rollout.Policy.Version != v.Version {
		return policy.Policy{}, api.Errorf(http.StatusConflict, "policy %d is not being rolled out", v.Version)
	}
	if promote {
		p.pol = *p.rollout.Policy
	}
	p.rollout = wire.Rollout{}
	p.record(wire.HistoryEntry{Event: fmt.Sprintf("%s version=%d", event, v.Version), By: by})
	return p.pol, nil
}

// Learned implements api.Policies.
func (p *Plane) Learned(context.Context) ([]policy.Learned, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return policy.Learn(p.Shown, p.pol.Baseline), nil
}

// guarder gives the plane's guard its own method set: Plane has a Fleet method and the guard's names are short.
type guarder struct{ p *Plane }

func (g guarder) Guard(context.Context) (wire.Guard, error) {
	g.p.mu.Lock()
	defer g.p.mu.Unlock()
	return g.p.guard, nil
}

func (g guarder) Freeze(_ context.Context, by, reason string) (wire.Guard, error) {
	return g.set(by, reason, true)
}
func (g guarder) Thaw(_ context.Context, by, reason string) (wire.Guard, error) {
	return g.set(by, reason, false)
}

func (g guarder) set(by, reason string, frozen bool) (wire.Guard, error) {
	p := g.p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.guard.Frozen, p.guard.FrozenBy, p.guard.FrozenAt, p.guard.FrozenWhy = frozen, "", time.Time{}, ""
	if frozen {
		p.guard.FrozenBy, p.guard.FrozenAt, p.guard.FrozenWhy = by, p.Now(), reason
	}
	p.record(wire.HistoryEntry{Event: fmt.Sprintf("guard frozen=%t reason=%q", frozen, reason), By: by})
	return p.guard, nil
}

// Tokens implements api.Enroller.
func (p *Plane) Tokens(_ context.Context, by string, ask wire.EnrolAsk) ([]wire.EnrolToken, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ttl := time.Hour
	if ask.TTL != "" {
		var err error
		if ttl, err = time.ParseDuration(ask.TTL); err != nil {
			return nil, err
		}
	}
	var out []wire.EnrolToken
	for _, node := range ask.Nodes {
		text, rec, err := p.CA.NewToken(p.urls, node, p.Now(), ttl)
		if err != nil {
			return nil, err
		}
		rec.Adopt, rec.Leaf, rec.By = ask.Adopt, ask.Leaf, by
		p.tokens[node] = rec
		out = append(out, wire.EnrolToken{Node: node, Token: text, Expires: rec.Expires})
	}
	return out, nil
}

// Enroll implements api.Enroller.
func (p *Plane) Enroll(_ context.Context, e wire.Enroll) (wire.Enrolled, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rec, ok := p.tokens[e.Node]
	if !ok {
		return wire.Enrolled{}, &authority.TokenError{Why: "none is open for " + e.Node}
	}
	if err := authority.Check(rec, e.Secret, p.Now()); err != nil {
		return wire.Enrolled{}, err
	}
	cert, err := p.CA.SignNode(e.CSR, e.Node, 365*24*time.Hour)
	if err != nil {
		return wire.Enrolled{}, err
	}
	delete(p.tokens, e.Node)
	if p.nodes[e.Node] == nil {
		p.nodes[e.Node] = &wire.Node{Name: e.Node, State: "enrolled", Since: p.Now(), Leaf: rec.Leaf}
		p.touch(e.Node)
	}
	return wire.Enrolled{Certificate: cert, CA: p.CA.CertPEM(), URLs: p.urls}, nil
}

// IssueOperator implements api.Enroller.
func (p *Plane) IssueOperator(_ context.Context, _ string, ask wire.OperatorAsk) (wire.Enrolled, error) {
	cert, err := p.CA.SignOperator(ask.CSR, ask.Name, authority.Role(ask.Role), time.Hour)
	if err != nil {
		return wire.Enrolled{}, err
	}
	return wire.Enrolled{Certificate: cert, CA: p.CA.CertPEM(), URLs: p.urls}, nil
}

// Heartbeat implements api.Agents.
func (p *Plane) Heartbeat(_ context.Context, hb wire.Heartbeat) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beats[hb.Node] = hb
	return nil
}

// Beat is the last heartbeat of a node.
func (p *Plane) Beat(node string) (wire.Heartbeat, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hb, ok := p.beats[node]
	return hb, ok
}

// Report implements api.Agents.
func (p *Plane) Report(_ context.Context, r checks.Report) (wire.ReportAnswer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[r.Node]
	if n == nil {
		return wire.ReportAnswer{}, unknownNode(r.Node)
	}
	_, dup := p.reports[r.ID]
	p.reports[r.ID] = r
	return wire.ReportAnswer{ID: r.ID, Duplicate: dup, State: n.State}, nil
}

// Reports returns how many different reports have come.
func (p *Plane) Reports() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.reports)
}

// Permit implements api.Agents.
func (p *Plane) Permit(_ context.Context, ask wire.PermitAsk) (wire.PermitAnswer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse && !ask.OwnGPU {
		return wire.PermitAnswer{Reason: "held_back: fleet budget 1 of 1 an hour"}, nil
	}
	return wire.PermitAnswer{Granted: true, Reason: "assay:Q-7F3K"}, nil
}

// EffectResult implements api.Agents.
func (p *Plane) EffectResult(_ context.Context, r wire.EffectResult) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results = append(p.results, r)
	return nil
}

// Results returns the effect results that have come.
func (p *Plane) Results() []wire.EffectResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.results)
}

// Desired implements api.Agents.
func (p *Plane) Desired(ctx context.Context, node string, after uint64) (wire.Desired, error) {
	var d wire.Desired
	var err error
	waited := p.await(ctx, func() bool {
		n := p.nodes[node]
		switch {
		case n == nil:
			err = unknownNode(node)
			return true
		case p.leader != "" || p.silent:
			err = api.Errorf(http.StatusMisdirectedRequest, "this control host does not lead")
			return true
		case p.versions[node] <= after:
			return false
		}
		d = wire.Desired{Version: p.versions[node], Term: 3, Node: node, State: n.State, Managed: n.State != "retired", Policy: p.pol, Effects: n.Effects}
		return true
	})
	if waited != nil {
		return d, waited
	}
	return d, err
}

// Open serves the plane's API on a unix socket and returns what stops it.
func (p *Plane) Open(ctx context.Context, socket string, s *api.Server) (func(context.Context) error, error) {
	ln, err := api.ListenUnix(ctx, socket)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- s.ServeUnix(ln) }()
	return func(ctx context.Context) error {
		if err := s.Shutdown(ctx); err != nil {
			return err
		}
		return <-done
	}, nil
}

// Refused implements api.Auditor.
func (p *Plane) Refused(_ context.Context, by string, has, needs authority.Role, call, node string) error {
	p.Record(wire.HistoryEntry{Node: node, Event: fmt.Sprintf("refused role=%s needs=%s call=%q", has, needs, call), By: by})
	return nil
}

// Audit implements api.Auditor.
func (p *Plane) Audit(context.Context) (wire.Audit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return wire.Verify(slices.Clone(p.history), p.head), nil
}

// Tamper changes the author of a history entry, as who can write to the store might.
func (p *Plane) Tamper(i int, by string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.history[i].By = by
}
