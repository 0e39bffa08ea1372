package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// OrderCase carries out take, give, note, extend or close on a case, and returns it after that.
func (c *Client) OrderCase(ctx context.Context, id, verb string, v wire.CaseVerb) (wire.Case, error) {
	return call[wire.Case](ctx, c, http.MethodPost, wire.PathCases+"/"+url.PathEscape(id)+"/"+verb, nil, v)
}

// Evidence writes a file of evidence to w. The error says so when it is not what sum, its SHA-256 in hex, says.
func (c *Client) Evidence(ctx context.Context, sum string, w io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, wire.PathEvidence+"/"+url.PathEscape(sum), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, hash), resp.Body); err != nil {
		return &UnreachableError{c.where(), fmt.Errorf("evidence %.12s broke off: %w", sum, err)}
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return &UnreachableError{c.where(), fmt.Errorf("evidence %.12s came with the sum %.12s", sum, got)}
	}
	return nil
}

// Tickets lists RMA tickets, the open ones alone or all.
func (c *Client) Tickets(ctx context.Context, openOnly bool) ([]rma.Ticket, error) {
	return call[[]rma.Ticket](ctx, c, http.MethodGet, wire.PathRMA, url.Values{"open": {strconv.FormatBool(openOnly)}}, nil)
}

// Ticket returns one RMA ticket.
func (c *Client) Ticket(ctx context.Context, id string) (rma.Ticket, error) {
	return call[rma.Ticket](ctx, c, http.MethodGet, wire.PathRMA+"/"+url.PathEscape(id), nil, nil)
}

// MoveTicket says where a part is.
func (c *Client) MoveTicket(ctx context.Context, id string, v wire.TicketVerb) (rma.Ticket, error) {
	return call[rma.Ticket](ctx, c, http.MethodPost, wire.PathRMA+"/"+url.PathEscape(id), nil, v)
}

// Parts returns parts by serial, or all.
func (c *Client) Parts(ctx context.Context, serials ...string) ([]rma.Part, error) {
	var q url.Values
	if len(serials) > 0 {
		q = url.Values{"serials": {strings.Join(serials, ",")}}
	}
	return call[[]rma.Part](ctx, c, http.MethodGet, wire.PathParts, q, nil)
}

// Lemons lists the nodes that fail more than others.
func (c *Client) Lemons(ctx context.Context) ([]rma.Lemon, error) {
	return call[[]rma.Lemon](ctx, c, http.MethodGet, wire.PathLemons, nil, nil)
}

// Lift ends the observe mode that a restore began.
func (c *Client) Lift(ctx context.Context, v wire.GuardVerb) (wire.Guard, error) {
	return call[wire.Guard](ctx, c, http.MethodPost, wire.PathGuard+"/reset", nil, v)
}

// Keys are the keys that node certificates are signed with.
func (c *Client) Keys(ctx context.Context) (wire.Keys, error) {
	return call[wire.Keys](ctx, c, http.MethodGet, wire.PathKeys, nil, nil)
}

// RotateKey has another key sign from now on.
func (c *Client) RotateKey(ctx context.Context, reason string) (wire.Keys, error) {
	return call[wire.Keys](ctx, c, http.MethodPost, wire.PathKeys+"/rotate", nil, wire.GuardVerb{Reason: reason})
}
