package api

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

var enrolRoutes = []route{
	{pattern: "POST " + wire.PathEnroll, kind: authority.Nobody, wait: readWait, do: (*Server).enroll},
	{pattern: "POST " + wire.PathEnrolment, role: authority.RoleAdmin, wait: permitWait, do: (*Server).tokens},
	{pattern: "POST " + wire.PathOperators, role: authority.RoleAdmin, wait: readWait, do: (*Server).issueOperator},
}

// maxTokens is how many tokens one request may ask for: a large fleet's, enrolled in one go.
const maxTokens = 10_000

// enroll needs no certificate: the token's secret stands for the caller. The secret has 256 bits, so the bound on the
// rate only keeps strangers from making us sign.
func (s *Server) enroll(c call) (any, error) {
	if ok, wait := s.enrolling.take(time.Now()); !ok {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		return nil, Errorf(http.StatusTooManyRequests, "too many enrolments at once").With("try again in a second")
	}
	var e wire.Enroll
	if err := decode(c, maxBody, false, &e); err != nil {
		return nil, err
	}
	if !authority.ValidName(e.Node) {
		return nil, Errorf(http.StatusBadRequest, "enrol: %.80q is no node name", e.Node)
	}
	return s.backend.Enroller.Enroll(c.ctx, e)
}

func (s *Server) tokens(c call) (any, error) {
	var ask wire.EnrolAsk
	if err := decode(c, maxReport, true, &ask); err != nil {
		return nil, err
	}
	if len(ask.Nodes) == 0 || len(ask.Nodes) > maxTokens {
		return nil, Errorf(http.StatusBadRequest, "enrol %d nodes: want 1 to %d", len(ask.Nodes), maxTokens)
	}
	seen := make(map[string]bool, len(ask.Nodes))
	for _, n := range ask.Nodes {
		if !authority.ValidName(n) {
			return nil, Errorf(http.StatusBadRequest, "enrol: %.80q is no node name", n)
		}
		if seen[n] {
			return nil, Errorf(http.StatusBadRequest, "enrol: %s is named twice", n)
		}
		seen[n] = true
	}
	if err := checkTTL(ask.TTL, 7*24*time.Hour); err != nil {
		return nil, err
	}
	return s.backend.Enroller.Tokens(c.ctx, c.who.name, ask)
}

func (s *Server) issueOperator(c call) (any, error) {
	var ask wire.OperatorAsk
	if err := decode(c, maxBody, true, &ask); err != nil {
		return nil, err
	}
	ask.Role = cmp.Or(ask.Role, string(authority.RoleOperator))
	if !authority.ValidName(ask.Name) {
		return nil, Errorf(http.StatusBadRequest, "operator: %.80q is no name", ask.Name)
	}
	if err := checkTTL(ask.TTL, 366*24*time.Hour); err != nil {
		return nil, err
	}
	return s.backend.Enroller.IssueOperator(c.ctx, c.who.name, ask)
}

func checkTTL(text string, most time.Duration) error {
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > most {
		return Errorf(http.StatusBadRequest, "ttl %.40q: want a duration as 1h, up to %s", text, most)
	}
	return nil
}
