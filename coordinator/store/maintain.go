package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Compact makes etcd forget what keys were before revision; what they are stays. Watches from an older revision then
// end with a *[CompactedError]. Compacting what is compacted already is no error.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	if _, err := s.client.Compact(ctx, revision); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact to revision %d: %w", revision, causeOf(ctx, err))
	}
	return nil
}

// CompactEvery compacts once in every interval, to the revision of the interval before, until ctx ends. So a watch may
// be one interval behind. The leader runs it; a stock etcd does not compact by itself.
func (s *Store) CompactEvery(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var before int64
	for {
		e, err := s.Get(ctx, leaderKey)
		if err == nil {
			if before > 0 && before < e.readAt {
				err = s.Compact(ctx, before)
			}
			before = e.readAt
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("store not compacted", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
