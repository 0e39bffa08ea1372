package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

var agentRoutes = []route{
	{pattern: "GET " + wire.PathStream, kind: authority.Node, wait: 0, do: (*Server).stream},
	{pattern: "POST " + wire.PathHeartbeat, kind: authority.Node, wait: readWait, do: (*Server).heartbeat},
	{pattern: "POST " + wire.PathReports, kind: authority.Node, wait: readWait, do: (*Server).report},
	{pattern: "POST " + wire.PathPermit, kind: authority.Node, wait: permitWait, do: (*Server).permit},
	{pattern: "POST " + wire.PathEffects, kind: authority.Node, wait: readWait, do: (*Server).effect},
	{pattern: "POST " + wire.PathGangs, kind: authority.Node, wait: readWait, do: (*Server).gang},
}

// own refuses a message about another node than the caller: a broken or hostile node may harm itself alone.
func own(c call, names ...string) error {
	for _, n := range names {
		if n != c.who.name {
			return Errorf(http.StatusForbidden, "node %s may not speak for %.80q", c.who.name, n)
		}
	}
	return nil
}

// room refuses a node that sends more than its share.
func (s *Server) room(c call) error {
	ok, wait := s.limits.take(c.who.name, time.Now())
	if ok {
		return nil
	}
	c.w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	return Errorf(http.StatusTooManyRequests, "node %s sends more than 50 messages a second", c.who.name).With("keep them in the spool and send them later")
}

func (s *Server) heartbeat(c call) (any, error) {
	var hb wire.Heartbeat
	if err := s.room(c); err != nil {
		return nil, err
	}
	if err := decode(c, maxBody, false, &hb); err != nil {
		return nil, err
	}
	if err := own(c, hb.Node); err != nil {
		return nil, err
	}
	return nil, s.backend.Agents.Heartbeat(c.ctx, hb)
}

func (s *Server) report(c call) (any, error) {
	var r checks.Report
	if err := s.room(c); err != nil {
		return nil, err
	}
	if err := decode(c, maxReport, false, &r); err != nil {
		return nil, err
	}
	if err := checkReport(c, r); err != nil {
		return nil, err
	}
	return s.backend.Agents.Report(c.ctx, r)
}

func (s *Server) permit(c call) (any, error) {
	var ask wire.PermitAsk
	if err := s.room(c); err != nil {
		return nil, err
	}
	if err := decode(c, maxReport, false, &ask); err != nil {
		return nil, err
	}
	if err := own(c, ask.Node); err != nil {
		return nil, err
	}
	if err := checkReport(c, ask.Report); err != nil {
		return nil, err
	}
	return s.backend.Agents.Permit(c.ctx, ask)
}

func (s *Server) effect(c call) (any, error) {
	var r wire.EffectResult
	if err := s.room(c); err != nil {
		return nil, err
	}
	if err := decode(c, maxBody, false, &r); err != nil {
		return nil, err
	}
	if err := own(c, r.Node); err != nil {
		return nil, err
	}
	if !token(r.ID) {
		return nil, Errorf(http.StatusBadRequest, "effect result: id %.80q is not an effect's id", r.ID)
	}
	switch r.Outcome {
	case "done", "failed", "skipped":
	default:
		return nil, Errorf(http.StatusBadRequest, "effect result %s: outcome %.40q: want done, failed or skipped", r.ID, r.Outcome)
	}
	return nil, s.backend.Agents.EffectResult(c.ctx, r)
}

// checkReport refuses a report that is about another node, or that has no id to be known by.
func checkReport(c call, r checks.Report) error {
	if !token(r.ID) {
		return Errorf(http.StatusBadRequest, "report: id %.80q: want 1 to 200 printable ASCII characters", r.ID)
	}
	if err := own(c, r.Node); err != nil {
		return err
	}
	if n := r.Inventory.Node; n != "" {
		if err := own(c, n); err != nil {
			return err
		}
	}
	for _, g := range r.Inventory.GPUs {
		if g.Node != "" && g.Node != c.who.name {
			return own(c, g.Node)
		}
	}
	for _, f := range r.Findings {
		if f.Subject.Node != "" && f.Subject.Node != c.who.name {
			return own(c, f.Subject.Node)
		}
	}
	return nil
}

// token reports whether s can stand in a key and in a log line: printable ASCII, no space, at most 200 bytes.
func token(s string) bool {
	if s == "" || len(s) > 200 {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
