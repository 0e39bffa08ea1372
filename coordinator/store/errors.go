package store

import (
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
)

// ErrDeposed says that this process does not lead any more. A commit that returns it has certainly not been applied.
var ErrDeposed error = deposedError{}

type deposedError struct{}

func (deposedError) Error() string { return "not the leader any more: the term has ended" }
func (deposedError) Status() int   { return 503 }

// An AmbiguousError says that a commit may or may not have been applied, and that the term ended before that could be
// found out. The caller must act on neither: it drops what it holds in memory and reads all of it again in a new term.
type AmbiguousError struct {
	Term int64
	Err  error // why etcd gave no answer
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("commit in term %d: outcome unknown when the term ended: %v", e.Term, e.Err)
}
func (e *AmbiguousError) Unwrap() error { return e.Err }
func (e *AmbiguousError) Status() int   { return 503 }

// A FullError says that etcd's database has reached its quota. The commit was not applied.
type FullError struct{ Err error }

func (e *FullError) Error() string { return fmt.Sprintf("commit refused: etcd is full: %v", e.Err) }
func (e *FullError) Unwrap() error { return e.Err }
func (e *FullError) Status() int   { return 507 } // not 503: sending it again at once is of no use
func (e *FullError) Hint() string {
	return "assayd makes room in an etcd of its own within a minute; an external one: compact and defragment it, or raise its --quota-backend-bytes, then etcdctl alarm disarm"
}

// A TooBigError says that a commit does not fit into one transaction of a stock etcd. Nothing was sent.
type TooBigError struct {
	Ops, Bytes int // Bytes: keys, prefix included, and values
}

func (e *TooBigError) Error() string {
	return fmt.Sprintf("commit of %d operations and %d bytes: at most %d operations and %d bytes fit into one transaction", e.Ops, e.Bytes, MaxOps, MaxBytes)
}

func (e *TooBigError) Hint() string {
	return "split it into commits that each leave a consistent state; a larger etcd limit does not help, stock limits always hold"
}

// A CompactedError says that a watch or a read asked for a revision that etcd has forgotten. The way on is a fresh List.
type CompactedError struct {
	Asked, Oldest int64 // Oldest: the oldest revision there is; 0: not known
}

func (e *CompactedError) Error() string {
	return fmt.Sprintf("revision %d is compacted away; the oldest is %d", e.Asked, e.Oldest)
}

// An UnreachableError says that no etcd answered in Open.
type UnreachableError struct {
	Endpoints []string
	Err       error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("etcd %s: %v", strings.Join(e.Endpoints, ","), e.Err)
}
func (e *UnreachableError) Unwrap() error { return e.Err }
func (e *UnreachableError) Hint() string {
	return "see that the endpoints are right and most members run: etcdctl --endpoints " + strings.Join(e.Endpoints, ",") + " endpoint status"
}

// An outcome is what an error from a transaction tells about it.
type outcome int

const (
	unclear  outcome = iota // it may be applied now, later or never
	rejected                // it was never applied and will not be
	answered                // etcd is done with it, applied or not: a read tells
)

// outcomeOf classifies the error of a transaction. Whatever is not known to be clear is unclear.
func outcomeOf(err error) outcome {
	var e rpctypes.EtcdError
	if !errors.As(rpctypes.Error(err), &e) {
		return unclear
	}
	switch {
	case errors.Is(e, rpctypes.ErrNoSpace):
		// etcd first applies the transaction that crosses its quota and then returns this error for it
		// (server/etcdserver/apply/quota.go, quotaApplierV3.Txn).
		return answered
	case errors.Is(e, rpctypes.ErrTooManyRequests), errors.Is(e, rpctypes.ErrLeaseNotFound):
		return rejected
	}
	switch e.Code() {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated:
		return rejected
	}
	return unclear
}
