package api

import (
	"context"
	"net/http"
	"strconv"
	"unicode"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/wire"
)

var operatorRoutes = []route{
	{pattern: "GET " + wire.PathFleet, role: authority.RoleViewer, wait: readWait, do: func(s *Server, c call) (any, error) { return s.backend.Fleet.Fleet(c.ctx) }},
	{pattern: "GET " + wire.PathNodes, role: authority.RoleViewer, wait: readWait, do: (*Server).nodes},
	{pattern: "GET " + wire.PathNodes + "/{node}", role: authority.RoleViewer, wait: readWait, do: (*Server).node},
	{pattern: "GET " + wire.PathNodes + "/{node}/history", role: authority.RoleViewer, wait: readWait, do: (*Server).nodeHistory},
	{pattern: "GET " + wire.PathNodes + "/{node}/explain", role: authority.RoleViewer, wait: readWait, do: (*Server).explain},
	{pattern: "POST " + wire.PathNodes + "/{node}/{verb}", role: authority.RoleOperator, admins: []string{string(VerbRetire)}, wait: permitWait, do: (*Server).order},
	{pattern: "GET " + wire.PathGuard, role: authority.RoleViewer, wait: readWait, do: func(s *Server, c call) (any, error) { return s.backend.Guarder.Guard(c.ctx) }},
	{pattern: "POST " + wire.PathGuard + "/{verb}", role: authority.RoleOperator, admins: []string{"reset"}, wait: readWait, do: (*Server).guard},
	{pattern: "GET " + wire.PathCases, role: authority.RoleViewer, wait: readWait, do: (*Server).cases},
	{pattern: "GET " + wire.PathCases + "/{id}", role: authority.RoleViewer, wait: readWait, do: (*Server).oneCase},
	{pattern: "GET " + wire.PathCerts, role: authority.RoleViewer, wait: readWait, do: (*Server).certificates},
	{pattern: "GET " + wire.PathCerts + "/{node}", role: authority.RoleViewer, wait: readWait, do: (*Server).certificate},
	{pattern: "GET " + wire.PathPolicy, role: authority.RoleViewer, wait: readWait, do: func(s *Server, c call) (any, error) { return s.backend.Policies.Policy(c.ctx) }},
	{pattern: "PUT " + wire.PathPolicy, role: authority.RoleAdmin, wait: readWait, do: (*Server).setPolicy},
	{pattern: "GET " + wire.PathRollout, role: authority.RoleViewer, wait: readWait, do: func(s *Server, c call) (any, error) { return s.backend.Policies.Rollout(c.ctx) }},
	{pattern: "POST " + wire.PathRollout, role: authority.RoleAdmin, wait: readWait, do: (*Server).rollOut},
	{pattern: "POST " + wire.PathRollout + "/{verb}", role: authority.RoleOperator, admins: []string{"promote"}, wait: readWait, do: (*Server).endRollout},
	{pattern: "GET " + wire.PathLearned, role: authority.RoleViewer, wait: readWait, do: (*Server).learned},
	{pattern: "GET " + wire.PathEvents, role: authority.RoleViewer, wait: 0, do: (*Server).events},
}

func (s *Server) nodes(c call) (any, error) {
	var names []string
	if list := c.r.URL.Query().Get("names"); list != "" {
		var err error
		if names, err = hostlist.Expand(list); err != nil {
			return nil, Errorf(http.StatusBadRequest, "%v", err)
		}
	}
	ns, err := s.backend.Fleet.Nodes(c.ctx, names)
	return listed(c, ns, err, func(n wire.Node) string { return n.Name })
}

func (s *Server) node(c call) (any, error) {
	name, err := nodeName(c.r)
	if err != nil {
		return nil, err
	}
	ns, err := s.backend.Fleet.Nodes(c.ctx, []string{name})
	if err != nil {
		return nil, err
	}
	if len(ns) != 1 {
		return nil, Errorf(http.StatusNotFound, "node %s is not known", name)
	}
	return ns[0], nil
}

func (s *Server) nodeHistory(c call) (any, error) {
	name, err := nodeName(c.r)
	if err != nil {
		return nil, err
	}
	es, err := s.backend.Fleet.NodeHistory(c.ctx, name)
	return listed(c, es, err, func(e wire.HistoryEntry) string { return e.Cursor })
}

func (s *Server) certificates(c call) (any, error) {
	cs, err := s.backend.Fleet.Certificates(c.ctx)
	return listed(c, cs, err, func(x certificate.Certificate) string { return x.Node })
}

func (s *Server) learned(c call) (any, error) {
	ls, err := s.backend.Policies.Learned(c.ctx)
	return listed(c, ls, err, func(l policy.Learned) string { return l.SKU })
}

func (s *Server) explain(c call) (any, error)     { return named(c, s.backend.Fleet.Explain) }
func (s *Server) certificate(c call) (any, error) { return named(c, s.backend.Fleet.Certificate) }

func named[T any](c call, get func(context.Context, string) (T, error)) (any, error) {
	name, err := nodeName(c.r)
	if err != nil {
		return nil, err
	}
	return get(c.ctx, name)
}

func (s *Server) order(c call) (any, error) {
	name, err := nodeName(c.r)
	if err != nil {
		return nil, err
	}
	verb := Verb(c.r.PathValue("verb"))
	switch verb {
	case VerbDrain, VerbResume, VerbHold, VerbUnhold, VerbRetire, VerbRMA, VerbRepair:
	default:
		return nil, Errorf(http.StatusNotFound, "%.40q is no order: drain, resume, hold, unhold, retire, rma and repaired are", verb)
	}
	var v wire.NodeVerb
	if err := decode(c, maxBody, true, &v); err != nil {
		return nil, err
	}
	if err := checkReason(v.Reason, verb != VerbUnhold); err != nil {
		return nil, err
	}
	if v.Owner != "" && !authority.ValidName(v.Owner) {
		return nil, Errorf(http.StatusBadRequest, "owner %.80q names nobody", v.Owner)
	}
	return s.backend.Operators.Order(c.ctx, c.who.name, verb, name, v)
}

func (s *Server) guard(c call) (any, error) {
	do := s.backend.Guarder.Freeze
	verb := c.r.PathValue("verb")
	switch verb {
	case "freeze", "reset":
	case "thaw":
		do = s.backend.Guarder.Thaw
	default:
		return nil, Errorf(http.StatusNotFound, "%.40q is no order to the guard: freeze, thaw and reset are", verb)
	}
	var v wire.GuardVerb
	if err := decode(c, maxBody, true, &v); err != nil {
		return nil, err
	}
	if err := checkReason(v.Reason, true); err != nil {
		return nil, err
	}
	if verb == "reset" {
		if v.AcceptRisk != "" && v.AcceptRisk != wire.RiskUnheard {
			return nil, Errorf(http.StatusBadRequest, "risk %.40q is none that can be accepted here", v.AcceptRisk).With("--accept-risk=" + wire.RiskUnheard)
		}
		if err := s.backend.Guarder.Lift(c.ctx, c.who.name, v.Reason, v.AcceptRisk == wire.RiskUnheard); err != nil {
			return nil, err
		}
		return s.backend.Guarder.Guard(c.ctx)
	}
	return do(c.ctx, c.who.name, v.Reason)
}

func (s *Server) cases(c call) (any, error) {
	open, err := flag(c.r, "open")
	if err != nil {
		return nil, err
	}
	cs, err := s.backend.Fleet.Cases(c.ctx, open)
	return listed(c, cs, err, func(k wire.Case) string { return k.ID })
}

func (s *Server) oneCase(c call) (any, error) {
	id, err := caseID(c.r)
	if err != nil {
		return nil, err
	}
	return s.backend.Fleet.Case(c.ctx, id)
}

func (s *Server) setPolicy(c call) (any, error) {
	var p policy.Policy
	if err := decode(c, maxReport, true, &p); err != nil {
		return nil, err
	}
	return s.backend.Policies.SetPolicy(c.ctx, c.who.name, p)
}

func (s *Server) rollOut(c call) (any, error) {
	var ask wire.RolloutAsk
	if err := decode(c, maxReport, true, &ask); err != nil {
		return nil, err
	}
	if err := checkReason(ask.Reason, false); err != nil {
		return nil, err
	}
	return s.backend.Policies.RollOut(c.ctx, c.who.name, ask)
}

func (s *Server) endRollout(c call) (any, error) {
	do := s.backend.Policies.Promote
	switch verb := c.r.PathValue("verb"); verb {
	case "promote":
	case "withdraw":
		do = s.backend.Policies.Withdraw
	default:
		return nil, Errorf(http.StatusNotFound, "%.40q is no order to a rollout: promote and withdraw are", verb)
	}
	var v wire.RolloutVerb
	if err := decode(c, maxBody, true, &v); err != nil {
		return nil, err
	}
	if err := checkReason(v.Reason, false); err != nil {
		return nil, err
	}
	return do(c.ctx, c.who.name, v)
}

type eventsAsk struct {
	after  string
	last   int      // -1: not asked for
	nodes  []string // whose last; empty: of all
	follow bool
}

func eventsQuery(r *http.Request) (eventsAsk, error) {
	q := eventsAsk{after: r.URL.Query().Get("after"), last: -1}
	if q.after != "" && !token(q.after) {
		return q, Errorf(http.StatusBadRequest, "after=%.80q is no cursor", q.after)
	}
	if text := r.URL.Query().Get("last"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 10_000 {
			return q, Errorf(http.StatusBadRequest, "last=%.40q: want a number up to 10000", text)
		}
		if q.after != "" {
			return q, Errorf(http.StatusBadRequest, "after and last exclude each other")
		}
		q.last = n
	}
	var err error
	if list := r.URL.Query().Get("nodes"); list != "" {
		if q.last < 0 {
			return q, Errorf(http.StatusBadRequest, "nodes says whose entries last counts, and goes with it")
		}
		if q.nodes, err = hostlist.Expand(list); err != nil {
			return q, Errorf(http.StatusBadRequest, "nodes: %v", err)
		}
	}
	q.follow, err = flag(r, "follow")
	return q, err
}

// checkReason refuses a missing reason, and one that would break a log line or Slurm's reason field.
func checkReason(reason string, required bool) error {
	if reason == "" && required {
		return Errorf(http.StatusBadRequest, "a reason is required").With("say why with --reason")
	}
	if len(reason) > 200 {
		return Errorf(http.StatusBadRequest, "the reason has %d bytes; 200 are the most", len(reason))
	}
	for _, r := range reason {
		if !unicode.IsPrint(r) {
			return Errorf(http.StatusBadRequest, "the reason holds the unprintable character %U", r)
		}
	}
	return nil
}
