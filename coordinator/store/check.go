package store

import (
	"fmt"
	"strings"
)

// An OpError says that a commit is wrong in itself. Nothing was sent.
type OpError struct{ Key, Problem string }

func (e *OpError) Error() string { return fmt.Sprintf("commit: key %q: %s", e.Key, e.Problem) }

// check sees that ops make one transaction that etcd will take.
func (s *Store) check(ops []Op) error {
	size := 0
	written := make(map[string]bool, len(ops))
	for _, op := range ops {
		size += len(s.prefix) + len(op.Key) + len(op.Value)
		switch {
		case op.Key == "":
			return &OpError{op.Key, "is empty"}
		case op.Key == leaderKey, op.Key == termKey, strings.HasPrefix(op.Key, commitKey),
			op.Delete && op.Prefix && (strings.HasPrefix(leaderKey, op.Key) || strings.HasPrefix(termKey, op.Key) || strings.HasPrefix(commitKey, op.Key)):
			return &OpError{op.Key, "is the store's own"}
		case op.Delete && (len(op.Value) > 0 || op.TTL != 0):
			return &OpError{op.Key, "a delete has neither value nor TTL"}
		case op.Prefix && !op.Delete:
			return &OpError{op.Key, "only a delete has a prefix"}
		case op.TTL < 0:
			return &OpError{op.Key, "negative TTL"}
		case written[op.Key]:
			return &OpError{op.Key, "is changed twice in one transaction"}
		}
		written[op.Key] = true
	}
	for _, op := range ops {
		if !op.Prefix {
			continue
		}
		for key := range written {
			if key != op.Key && strings.HasPrefix(key, op.Key) {
				return &OpError{key, "is changed twice in one transaction: the prefix " + op.Key + " is deleted in it"}
			}
		}
	}
	if len(ops) > MaxOps || size > MaxBytes {
		return &TooBigError{len(ops), size}
	}
	return nil
}
