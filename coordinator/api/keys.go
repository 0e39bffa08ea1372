package api

import (
	"context"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Keys keeps the keys that node certificates are signed with.
type Keys interface {
	Keys(ctx context.Context) (wire.Keys, error)
	// RotateKey has another key sign from now on; the one before stays trusted.
	RotateKey(ctx context.Context, by, reason string) (wire.Keys, error)
}

var keyRoutes = []route{
	{pattern: "GET " + wire.PathKeys, role: authority.RoleViewer, wait: readWait, do: func(s *Server, c call) (any, error) { return s.backend.Keys.Keys(c.ctx) }},
	{pattern: "POST " + wire.PathKeys + "/rotate", role: authority.RoleAdmin, wait: readWait, do: (*Server).rotateKey},
}

func (s *Server) rotateKey(c call) (any, error) {
	var v wire.GuardVerb
	if err := decode(c, maxBody, true, &v); err != nil {
		return nil, err
	}
	if err := checkReason(v.Reason, true); err != nil {
		return nil, err
	}
	return s.backend.Keys.RotateKey(c.ctx, c.who.name, v.Reason)
}
