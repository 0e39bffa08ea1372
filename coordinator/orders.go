package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Order implements api.Operators: a person's word on one node.
func (c *Coordinator) Order(ctx context.Context, by string, verb api.Verb, node string, v wire.NodeVerb) (wire.Node, error) {
	l, err := c.leading()
	if err != nil {
		return wire.Node{}, err
	}
	err = l.do(ctx, func(t *tx) error {
		n, ok := t.node(node)
		if !ok {
			return &UnknownNodeError{node}
		}
		at := lifecycle.At{Time: t.now}
		var ev lifecycle.Event
		switch verb {
		case api.VerbDrain:
			ev = lifecycle.OrderDrain{At: at, By: by, Reason: v.Reason}
		case api.VerbResume:
			ev = resumeOrder(n, at, by, v)
		case api.VerbHold:
			ev = lifecycle.OrderHold{At: at, By: by, Reason: v.Reason, Until: v.Until}
		case api.VerbUnhold:
			owner := v.Owner
			if owner == "" {
				owner = by
			}
			ev = lifecycle.OrderUnhold{At: at, By: by, Owner: owner}
		case api.VerbRMA:
			ev = lifecycle.OrderRMA{At: at, By: by, Reason: v.Reason}
		case api.VerbRepair:
			ev = lifecycle.OrderRepaired{At: at, By: by, Outcome: v.Reason}
		case api.VerbRetire:
			ev = lifecycle.OrderRetire{At: at, By: by, Reason: v.Reason}
		default:
			return &invalidError{fmt.Sprintf("verb %q: no such order", verb), "orders are drain, resume, hold, unhold, retire, rma and repaired"}
		}
		return t.apply(node, ev, by)
	})
	if err != nil {
		var illegal *lifecycle.IllegalError
		if errors.As(err, &illegal) {
			return wire.Node{}, &refusedError{err.Error(), "`assay node explain " + node + "` says where it stands and what is possible"}
		}
		return wire.Node{}, err
	}
	nodes, err := c.Nodes(ctx, []string{node})
	if err != nil {
		return wire.Node{}, err
	}
	return nodes[0], nil
}

// resumeOrder is what a person's resume means for the node where it stands: the end of a drain that is not complete, unless the
// risk of no certificate is accepted, which holds on every node that is out.
func resumeOrder(n lifecycle.Node, at lifecycle.At, by string, v wire.NodeVerb) lifecycle.Event {
	if n.State == lifecycle.Draining && v.AcceptRisk == "" {
		return lifecycle.OrderCancel{At: at, By: by, Reason: v.Reason}
	}
	return lifecycle.OrderResume{At: at, By: by, Reason: v.Reason, AcceptRisk: v.AcceptRisk}
}
