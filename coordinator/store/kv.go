package store

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// KV is every call the store makes on etcd, watches and lease renewals apart. [Config.Wrap] may put another in front of
// it. Keys are whole here: the prefix is in them.
type KV interface {
	// Txn applies t.Then if every compare holds and t.Else if not, as one change.
	Txn(ctx context.Context, t Txn) (TxnResult, error)
	// Range reads keys, linearizable.
	Range(ctx context.Context, q Query) (RangeResult, error)
	// Grant makes a lease of so many seconds; etcd may give more.
	Grant(ctx context.Context, seconds int64) (lease, granted int64, err error)
	// Revoke ends a lease and deletes the keys on it.
	Revoke(ctx context.Context, lease int64) error
}

// A Txn is one etcd transaction.
type Txn struct {
	If         []Compare
	Then, Else []Call
}

// A Compare holds when Key was last modified at ModRevision; 0: when there is no such key.
type Compare struct {
	Key         string
	ModRevision int64
}

// A Call is one operation of a transaction: a read if Read is set, a put if Value is not nil, else a delete.
type Call struct {
	Key   string
	Until string // deletes only: all keys from Key up to and without Until
	Value []byte
	Lease int64 // puts only: the key goes when the lease does
	Read  bool
}

// A TxnResult is the answer to a Txn. Reads holds what its reads found, in order; a key that is not there gives the
// zero Entry.
type TxnResult struct {
	Succeeded bool
	Revision  int64
	Reads     []Entry
}

// A Query asks for Key, or for the keys from Key up to and without Until.
type Query struct {
	Key, Until string
	Revision   int64 // 0: the newest
	Limit      int64 // 0: no limit
}

// A RangeResult is the answer to a Query.
type RangeResult struct {
	Entries  []Entry
	Revision int64 // the store's when it was read
	More     bool  // the limit cut it short
}

// An Entry is one key as it stands in the store.
type Entry struct {
	Key         string
	Value       []byte
	ModRevision int64 // of the transaction that wrote it; 0: there is no such key
	Lease       int64 // 0: none

	readAt int64 // the store's revision when Get read it
}

// etcdKV is the KV that goes to etcd.
type etcdKV struct{ client *clientv3.Client }

func (e etcdKV) Txn(ctx context.Context, t Txn) (TxnResult, error) {
	compares := make([]clientv3.Cmp, len(t.If))
	for i, c := range t.If {
		compares[i] = clientv3.Compare(clientv3.ModRevision(c.Key), "=", c.ModRevision)
	}
	r, err := e.client.Txn(ctx).If(compares...).Then(etcdOps(t.Then)...).Else(etcdOps(t.Else)...).Commit()
	if err != nil {
		return TxnResult{}, err
	}
	out := TxnResult{Succeeded: r.Succeeded, Revision: r.Header.Revision}
	for _, part := range r.Responses {
		get := part.GetResponseRange()
		if get == nil {
			continue
		}
		var found Entry
		if len(get.Kvs) > 0 {
			found = entryOf(get.Kvs[0])
		}
		out.Reads = append(out.Reads, found)
	}
	return out, nil
}

func entryOf(kv *mvccpb.KeyValue) Entry {
	return Entry{Key: string(kv.Key), Value: kv.Value, ModRevision: kv.ModRevision, Lease: kv.Lease}
}

func etcdOps(calls []Call) []clientv3.Op {
	ops := make([]clientv3.Op, len(calls))
	for i, c := range calls {
		switch {
		case c.Read:
			ops[i] = clientv3.OpGet(c.Key)
		case c.Value != nil && c.Lease != 0:
			ops[i] = clientv3.OpPut(c.Key, string(c.Value), clientv3.WithLease(clientv3.LeaseID(c.Lease)))
		case c.Value != nil:
			ops[i] = clientv3.OpPut(c.Key, string(c.Value))
		case c.Until != "":
			ops[i] = clientv3.OpDelete(c.Key, clientv3.WithRange(c.Until))
		default:
			ops[i] = clientv3.OpDelete(c.Key)
		}
	}
	return ops
}

func (e etcdKV) Range(ctx context.Context, q Query) (RangeResult, error) {
	opts := []clientv3.OpOption{clientv3.WithRev(q.Revision), clientv3.WithLimit(q.Limit)}
	if q.Until != "" {
		opts = append(opts, clientv3.WithRange(q.Until))
	}
	r, err := e.client.Get(ctx, q.Key, opts...)
	if err != nil {
		return RangeResult{}, err
	}
	out := RangeResult{Entries: make([]Entry, len(r.Kvs)), Revision: r.Header.Revision, More: r.More}
	for i, kv := range r.Kvs {
		out.Entries[i] = entryOf(kv)
	}
	return out, nil
}

func (e etcdKV) Grant(ctx context.Context, seconds int64) (lease, granted int64, err error) {
	r, err := e.client.Grant(ctx, seconds)
	if err != nil {
		return 0, 0, err
	}
	if r.Error != "" {
		return 0, 0, fmt.Errorf("lease of %d s: %s", seconds, r.Error)
	}
	return int64(r.ID), r.TTL, nil
}

func (e etcdKV) Revoke(ctx context.Context, lease int64) error {
	_, err := e.client.Revoke(ctx, clientv3.LeaseID(lease))
	return err
}
