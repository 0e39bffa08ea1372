package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// How many refusals of one caller are recorded: a few at once, then one a minute. History is bounded, and nobody shall
// push what others did out of it by asking for what is refused.
const (
	refusalRate  = 1.0 / 60
	refusalBurst = 5
)

var auditRoutes = []route{
	{pattern: "GET " + wire.PathAudit, role: authority.RoleViewer, wait: batchWait, do: func(s *Server, c call) (any, error) { return s.backend.Auditor.Audit(c.ctx) }},
}

// caller is the kind of caller that a route is for.
func (rt route) caller() authority.Kind {
	if rt.role != authority.RoleNone {
		return authority.Operator
	}
	return rt.kind
}

// needs is the role that this call of the route needs.
func (rt route) needs(r *http.Request) authority.Role {
	if slices.Contains(rt.admins, r.PathValue("verb")) {
		return authority.RoleAdmin
	}
	return rt.role
}

// refuse turns away a caller of another kind than the route is for.
func refuse(want authority.Kind, who caller) error {
	if who.kind == authority.Nobody {
		e := Errorf(http.StatusUnauthorized, "%s", who.deny)
		if want == authority.Node {
			return e.With("enrol the node: assay node enroll NODE on the control host, then assay-agent enroll --token TOKEN")
		}
		return e.With("run as root on the control host, or use a certificate from assay operator issue")
	}
	return Errorf(http.StatusForbidden, "%s %s may not call an endpoint for %ss", who.kind, who.name, want)
}

// refuseRole turns away a person whose role is too little, and records that.
func (s *Server) refuseRole(r *http.Request, who caller, need authority.Role) error {
	call := r.Method + " " + r.URL.Path
	if len(call) > 120 {
		call = call[:120]
	}
	s.log.Warn("call refused for want of a role", "caller", who.name, "role", who.role, "needs", need, "call", call)
	if ok, _ := s.refusals.take(who.name, time.Now()); ok && s.backend.Auditor != nil {
		node, err := nodeName(r)
		if err != nil {
			node = ""
		}
		ctx, cancel := context.WithTimeout(r.Context(), readWait)
		defer cancel()
		if err := s.backend.Auditor.Refused(ctx, who.name, who.role, need, call, node); err != nil {
			s.log.Error("refusal not recorded", "caller", who.name, "call", call, "err", err)
		}
	}
	return Errorf(http.StatusForbidden, "%s has the role %s; %s needs %s", who.name, who.role, call, need).
		With("an admin gives another role with: assay operator issue " + who.name + " --role " + string(need))
}
