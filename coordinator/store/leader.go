package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// The store's own keys, after the prefix.
const (
	leaderKey = "leader"
	termKey   = "term"
	commitKey = "commit/"
)

// A Leader is who leads, as the leader key says it. The zero Leader: nobody.
type Leader struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	Term int64  `json:"term"`
}

// Leader reads who leads now.
func (s *Store) Leader(ctx context.Context) (Leader, error) {
	e, err := s.Get(ctx, leaderKey)
	if err != nil {
		return Leader{}, err
	}
	return leaderOf(e)
}

func leaderOf(e Entry) (Leader, error) {
	var l Leader
	if e.ModRevision == 0 {
		return l, nil
	}
	if err := json.Unmarshal(e.Value, &l); err != nil {
		return Leader{}, fmt.Errorf("leader key %q: %w", e.Value, err)
	}
	return l, nil
}

// WatchLeader sends who leads, now and after each change, until ctx ends; then the channel is closed. Only the newest
// is kept for a reader that is behind.
func (s *Store) WatchLeader(ctx context.Context) <-chan Leader {
	out := make(chan Leader, 1)
	go func() {
		defer close(out)
		var last *Leader
		for ctx.Err() == nil {
			e, err := s.Get(ctx, leaderKey)
			if err == nil {
				var l Leader
				if l, err = leaderOf(e); err == nil {
					if last == nil || *last != l {
						last = &l
						sendNewest(out, l)
					}
					s.waitChange(ctx, leaderKey, e)
					continue
				}
			}
			if ctx.Err() == nil {
				s.log.Warn("leader not readable", "err", err)
				sleep(ctx, time.Second)
			}
		}
	}()
	return out
}

func sendNewest(out chan Leader, l Leader) {
	for {
		select {
		case out <- l:
			return
		default:
		}
		select {
		case <-out:
		default:
		}
	}
}

// waitChange returns when the key is not as seen any more, when the watch on it breaks, or when ctx ends. The caller
// reads again.
func (s *Store) waitChange(ctx context.Context, key string, seen Entry) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	select {
	// Not from its own revision: a leader key can be older than what etcd still remembers.
	case <-s.watchKey(ctx, key, seen.readAt+1).C:
	case <-ctx.Done():
	}
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
