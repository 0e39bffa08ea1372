package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Repairs keeps RMA tickets and the ledger of parts.
type Repairs interface {
	Tickets(ctx context.Context, openOnly bool) ([]rma.Ticket, error)
	Ticket(ctx context.Context, id string) (rma.Ticket, error)
	MoveTicket(ctx context.Context, by, id string, v wire.TicketVerb) (rma.Ticket, error)
	Parts(ctx context.Context, serials []string) ([]rma.Part, error)
	Lemons(ctx context.Context) ([]rma.Lemon, error)
}

var repairRoutes = []route{
	{pattern: "GET " + wire.PathRMA, role: authority.RoleViewer, wait: readWait, do: (*Server).tickets},
	{pattern: "GET " + wire.PathRMA + "/{id}", role: authority.RoleViewer, wait: readWait, do: (*Server).ticket},
	{pattern: "POST " + wire.PathRMA + "/{id}", role: authority.RoleOperator, wait: readWait, do: (*Server).moveTicket},
	{pattern: "GET " + wire.PathParts, role: authority.RoleViewer, wait: readWait, do: (*Server).parts},
	{pattern: "GET " + wire.PathLemons, role: authority.RoleViewer, wait: readWait, do: (*Server).lemons},
}

func (s *Server) tickets(c call) (any, error) {
	open, err := flag(c.r, "open")
	if err != nil {
		return nil, err
	}
	ts, err := s.backend.Repairs.Tickets(c.ctx, open)
	return listed(c, ts, err, func(t rma.Ticket) string { return t.ID })
}

func (s *Server) ticket(c call) (any, error) {
	id, err := ticketID(c.r)
	if err != nil {
		return nil, err
	}
	return s.backend.Repairs.Ticket(c.ctx, id)
}

func ticketID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !token(id) || len(id) > 40 {
		return "", Errorf(http.StatusBadRequest, "%.80q is no ticket's id; they look like R-7F3K", id)
	}
	return id, nil
}

func (s *Server) moveTicket(c call) (any, error) {
	id, err := ticketID(c.r)
	if err != nil {
		return nil, err
	}
	var v wire.TicketVerb
	if err := decode(c, maxBody, true, &v); err != nil {
		return nil, err
	}
	for _, text := range []string{v.Note, v.Vendor, v.Owner} {
		if err := checkReason(text, false); err != nil {
			return nil, err
		}
	}
	if v == (wire.TicketVerb{}) {
		return nil, Errorf(http.StatusBadRequest, "ticket %s: nothing to change is named", id)
	}
	return s.backend.Repairs.MoveTicket(c.ctx, c.who.name, id, v)
}

func (s *Server) parts(c call) (any, error) {
	var serials []string
	if text := c.r.URL.Query().Get("serials"); text != "" {
		serials = strings.Split(text, ",")
	}
	ps, err := s.backend.Repairs.Parts(c.ctx, serials)
	return listed(c, ps, err, func(p rma.Part) string { return p.Serial })
}

func (s *Server) lemons(c call) (any, error) {
	ls, err := s.backend.Repairs.Lemons(c.ctx)
	return listed(c, ls, err, func(l rma.Lemon) string { return l.Node })
}
