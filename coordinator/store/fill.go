package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrNotEmpty says that there is data where a backup was to be restored.
var ErrNotEmpty = errors.New("the store holds data already")

// Own reports whether a key is the store's own, and so no part of a backup.
func Own(key string) bool {
	return key == leaderKey || key == termKey || strings.HasPrefix(key, commitKey)
}

// LastTerm is the number of the last term; 0 before the first.
func (s *Store) LastTerm(ctx context.Context) (int64, error) {
	e, err := s.Get(ctx, termKey)
	if err != nil || e.ModRevision == 0 {
		return 0, err
	}
	return strconv.ParseInt(string(e.Value), 10, 64)
}

// Fill puts keys into a store that holds none, for a restore: nobody may lead meanwhile. The next term's number is above
// term. The term is written last.
func (s *Store) Fill(ctx context.Context, ops []Op, term int64) error {
	if e, err := s.Get(ctx, leaderKey); err != nil {
		return err
	} else if e.ModRevision != 0 {
		return fmt.Errorf("%w, and %s leads", ErrNotEmpty, e.Value)
	}
	if have, _, err := s.List(ctx, ""); err != nil {
		return err
	} else if len(have) > 0 {
		return fmt.Errorf("%w: %d keys", ErrNotEmpty, len(have))
	}
	put := func(calls []Call) error {
		ctx, cancel := s.call(ctx)
		defer cancel()
		_, err := s.kv.Txn(ctx, Txn{Then: calls})
		return causeOf(ctx, err)
	}
	var calls []Call
	size := 0
	for _, op := range ops {
		if Own(op.Key) || op.Delete {
			return &OpError{op.Key, "has no place in a restore"}
		}
		if len(calls) > 0 && (len(calls) == MaxOps || size+len(op.Value) > MaxBytes/2) {
			if err := put(calls); err != nil {
				return fmt.Errorf("restore: %w", err)
			}
			calls, size = nil, 0
		}
		calls, size = append(calls, Call{Key: s.prefix + op.Key, Value: append([]byte{}, op.Value...)}), size+len(op.Value)
	}
	if len(calls) > 0 {
		if err := put(calls); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	if err := put([]Call{{Key: s.prefix + termKey, Value: strconv.AppendInt(nil, term, 10)}}); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}
