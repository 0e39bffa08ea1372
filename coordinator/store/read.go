package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// pageSize is how many keys List asks for in one call: at 1 KiB a key, half a megabyte a page.
const pageSize = 512

// List reads all keys that begin with prefix as they stood at one revision, sorted by key. It is linearizable: it sees
// every commit that was acknowledged before it was called.
func (s *Store) List(ctx context.Context, prefix string) ([]Entry, int64, error) {
	q := Query{Key: s.prefix + prefix, Until: clientv3.GetPrefixRangeEnd(s.prefix + prefix), Limit: pageSize}
	var all []Entry
	for {
		r, err := s.rangeCall(ctx, q)
		if err != nil {
			return nil, 0, fmt.Errorf("list %s: %w", q.Key, err)
		}
		if q.Revision == 0 {
			q.Revision = r.Revision
		}
		for _, e := range r.Entries {
			q.Key = e.Key + "\x00"
			e.Key = strings.TrimPrefix(e.Key, s.prefix)
			all = append(all, e)
		}
		if !r.More {
			return all, q.Revision, nil
		}
	}
}

// Get reads one key, linearizable. An Entry with ModRevision 0 says that there is none.
func (s *Store) Get(ctx context.Context, key string) (Entry, error) {
	r, err := s.rangeCall(ctx, Query{Key: s.prefix + key})
	if err != nil {
		return Entry{}, fmt.Errorf("get %s: %w", s.prefix+key, err)
	}
	if len(r.Entries) == 0 {
		return Entry{Key: key, readAt: r.Revision}, nil
	}
	e := r.Entries[0]
	e.Key, e.readAt = key, r.Revision
	return e, nil
}

func (s *Store) rangeCall(ctx context.Context, q Query) (RangeResult, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	r, err := s.kv.Range(ctx, q)
	if errors.Is(err, rpctypes.ErrCompacted) {
		return r, &CompactedError{Asked: q.Revision}
	}
	return r, causeOf(ctx, err)
}
