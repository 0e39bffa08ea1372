package main

import (
	"context"

	"github.com/assay-gpu/assay/agent"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A gangNode is the agent as its launcher sees it.
type gangNode struct{ agent *agent.Agent }

func (g *gangNode) Check(ctx context.Context, o wire.GangOrder) (bool, string, uint64) {
	return g.agent.CheckGang(ctx, o)
}

func (g *gangNode) Ended(ctx context.Context, o wire.GangOrder) { g.agent.EndGang(ctx, o) }
