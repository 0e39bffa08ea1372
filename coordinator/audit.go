package coordinator

import (
	"context"
	"strconv"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Refused implements api.Auditor.
func (c *Coordinator) Refused(ctx context.Context, by string, has, needs authority.Role, call, node string) error {
	l, err := c.leading()
	if err != nil {
		return err
	}
	return l.do(ctx, func(t *tx) error {
		t.record(wire.HistoryEntry{Node: node, Event: "refused role=" + string(has) + " needs=" + string(needs) + " call=" + strconv.Quote(call), By: by})
		return nil
	})
}
