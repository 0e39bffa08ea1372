package client

import (
	"context"
	"net/http"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// Drill is the drill under way, or the last.
func (c *Client) Drill(ctx context.Context) (wire.Drill, error) {
	return call[wire.Drill](ctx, c, http.MethodGet, wire.PathDrill, nil, nil)
}

// StartDrill begins a drill; Drill says how it goes on.
func (c *Client) StartDrill(ctx context.Context, ask wire.DrillAsk) (wire.Drill, error) {
	return call[wire.Drill](ctx, c, http.MethodPost, wire.PathDrill, nil, ask)
}
