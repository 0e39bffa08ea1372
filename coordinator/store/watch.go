package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// An Event is one key's change.
type Event struct {
	Entry        // as it stands after the change; a deleted one has no value
	Deleted bool // ModRevision is then the deletion's
}

// A Watch is a stream of changes.
type Watch struct {
	// C gives the changes in the order they were made, those of one transaction always together. It is closed when the
	// watch ends; then Err says why.
	C <-chan []Event

	err error // set before C is closed
}

// Err says why the watch ended: a *CompactedError when it fell behind what etcd still has, else why the context ended.
// Call it only after C was closed.
func (w *Watch) Err() error { return w.err }

// Watch follows the keys that begin with prefix, from revision from on (a List's revision plus one), until ctx ends.
// A lost connection or a change of etcd's own leader is bridged without gap or repetition.
func (s *Store) Watch(ctx context.Context, prefix string, from int64) *Watch {
	return s.watch(ctx, s.prefix+prefix, from, clientv3.WithPrefix())
}

func (s *Store) watchKey(ctx context.Context, key string, from int64) *Watch {
	return s.watch(ctx, s.prefix+key, from)
}

func (s *Store) watch(ctx context.Context, key string, from int64, opts ...clientv3.OpOption) *Watch {
	c := make(chan []Event)
	w := &Watch{C: c}
	go func() {
		defer close(c)
		w.err = s.follow(ctx, key, from, opts, c)
	}()
	return w
}

// follow runs a watch, starting it again from the next revision whenever etcd ends it for a reason that passes.
func (s *Store) follow(ctx context.Context, key string, next int64, opts []clientv3.OpOption, c chan<- []Event) error {
	for {
		// A context of its own: two watches on one context share a stream, and only one of them is to be ended.
		wctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		var err error
		for r := range s.client.Watch(wctx, key, append(opts, clientv3.WithRev(next))...) {
			if err = r.Err(); err != nil {
				if errors.Is(err, rpctypes.ErrCompacted) {
					cancel()
					return &CompactedError{Asked: next, Oldest: r.CompactRevision}
				}
				break
			}
			events := make([]Event, len(r.Events))
			for i, ev := range r.Events {
				e := entryOf(ev.Kv)
				e.Key = strings.TrimPrefix(e.Key, s.prefix)
				events[i] = Event{e, ev.Type == clientv3.EventTypeDelete}
				next = max(next, e.ModRevision+1)
			}
			if len(events) == 0 {
				continue
			}
			select {
			case c <- events:
			case <-ctx.Done():
			}
		}
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.log.Info("watch restarted", "key", key, "revision", next, "err", err)
		sleep(ctx, 100*time.Millisecond)
	}
}
