package coordinator

import (
	"context"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// Entries implements api.History.
func (c *Coordinator) Entries(ctx context.Context, after string, most int, wait bool) ([]wire.HistoryEntry, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	for {
		l.mu.RLock()
		found, err := entriesAfter(l.history, after, most)
		news := l.news
		l.mu.RUnlock()
		if err != nil || len(found) > 0 || !wait {
			return found, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-l.term.Done():
			return nil, errDeposed
		}
	}
}

// entriesAfter returns at most most entries after the cursor. A cursor before the oldest kept entry is gone, unless the
// oldest is the very next.
func entriesAfter(h []wire.HistoryEntry, after string, most int) ([]wire.HistoryEntry, error) {
	i, found := slices.BinarySearchFunc(h, after, func(e wire.HistoryEntry, c string) int { return strings.Compare(e.Cursor, c) })
	switch {
	case found:
		i++
	case after != "" && i == 0 && len(h) > 0:
		return nil, &goneError{after}
	}
	return slices.Clone(h[i:min(len(h), i+most)]), nil
}

// Last implements api.History.
func (c *Coordinator) Last(_ context.Context, n int) ([]wire.HistoryEntry, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.history[max(0, len(l.history)-max(n, 0)):]), nil
}

// NodeHistory implements api.Fleet: what is kept of one node, oldest first.
func (c *Coordinator) NodeHistory(_ context.Context, node string) ([]wire.HistoryEntry, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if _, ok := l.st.nodes[node]; !ok {
		return nil, &UnknownNodeError{node}
	}
	return filter(l.history, func(h wire.HistoryEntry) bool { return h.Node == node }), nil
}

func filter[T any](xs []T, keep func(T) bool) []T {
	out := []T{}
	for _, x := range xs {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}
