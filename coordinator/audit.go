package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

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

// Audit implements api.Auditor: it reads what etcd holds, not what this process remembers. The head is read first; what is
// written after it belongs to the next look.
func (c *Coordinator) Audit(ctx context.Context) (wire.Audit, error) {
	if _, err := c.leading(); err != nil {
		return wire.Audit{}, err
	}
	head, err := c.cfg.Store.Get(ctx, keyCounters)
	if err != nil {
		return wire.Audit{}, err
	}
	var at counters
	if len(head.Value) > 0 {
		if err := json.Unmarshal(head.Value, &at); err != nil {
			return wire.Audit{}, fmt.Errorf("read %s: %w", keyCounters, err)
		}
	}
	stored, _, err := c.cfg.Store.List(ctx, keyHistory)
	if err != nil {
		return wire.Audit{}, err
	}
	var entries []wire.HistoryEntry
	for _, s := range stored {
		number := strings.TrimPrefix(s.Key, keyHistory)
		if number > cursor(at.History) {
			break
		}
		var e wire.HistoryEntry
		if err := json.Unmarshal(s.Value, &e); err != nil {
			e = wire.HistoryEntry{Cursor: number, Event: "not readable: " + err.Error(), Hash: "none"}
		}
		entries = append(entries, e)
	}
	return wire.Verify(entries, at.Head), nil
}
