package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Limits of one commit, within those of a stock etcd: 128 operations, of which one is the commit's own marker, and a
// request of 1.5 MiB, of which 16 KiB are left for framing.
const (
	MaxOps   = 127
	MaxBytes = 1536<<10 - 16<<10
)

// commitTries is how often a commit is sent that etcd turns out not to have applied.
const commitTries = 5

// An Op is one change of a commit: a put, or a delete.
type Op struct {
	Key    string
	Value  []byte
	Delete bool
	Prefix bool          // with Delete: every key that begins with Key
	TTL    time.Duration // of a put: etcd deletes the key after it, rounded up to seconds; 0: never
}

// Commit applies ops as one transaction, all or none, if this process still leads, and gives its revision. Commits of a
// term are strictly sequential: the next is not sent before the one under way is known to be applied or not.
//
// When etcd gives no clear answer, Commit finds out and, if nothing was applied, tries again. The caller sees one of
//
//   - nil: applied, once;
//   - [ErrDeposed]: not applied, and the term has ended;
//   - a *[AmbiguousError]: not known, and the term has ended; call Resign;
//   - any other error: not applied, and never will be. The term goes on.
//
// ctx ends the wait for a turn. Once the transaction is sent, it is followed to its end whatever becomes of ctx: that
// takes one answer from etcd, or the length of the lease at most.
//
// The transaction's only compare is the leader key's revision. To settle a commit, the same leader key is put once more
// in a fenced transaction that also reads the commit's marker. From then on the lost transaction can never apply, were
// it still under way, so what the marker says is final.
func (t *Term) Commit(ctx context.Context, ops []Op) (int64, error) {
	if err := t.s.check(ops); err != nil {
		return 0, err
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-t.done:
		return 0, ErrDeposed
	case <-ctx.Done():
		return 0, fmt.Errorf("commit not sent: %w", context.Cause(ctx))
	}
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("commit not sent: %w", context.Cause(ctx))
	}
	ctx = context.WithoutCancel(ctx)
	calls, err := t.calls(ctx, ops)
	if err != nil {
		return 0, err
	}
	t.commits++
	mark := fmt.Appendf(nil, "%s %d", t.nonce, t.commits)
	calls = append(calls, Call{Key: t.s.marker(t.Number()), Value: mark})
	for try := 1; ; try++ {
		r, err := t.send(ctx, Txn{If: t.fence(), Then: calls})
		switch {
		case errors.Is(err, ErrDeposed):
			return 0, err
		case err == nil && r.Succeeded:
			return r.Revision, nil
		case err == nil:
			t.lost() // the leader key is on it
			t.end(errors.New("a commit found another leader"))
			return 0, ErrDeposed
		case outcomeOf(err) == rejected:
			return 0, fmt.Errorf("commit refused by etcd: %w", err)
		}
		t.s.log.Info("commit has no clear answer", "term", t.Number(), "err", err)
		revision, settled := t.settle(ctx, mark, err)
		if !errors.Is(settled, errNotApplied) {
			return revision, settled
		}
		if outcomeOf(err) == answered {
			return 0, &FullError{err}
		}
		if try == commitTries {
			return 0, fmt.Errorf("commit not applied in %d tries: %w", try, err)
		}
	}
}

// errNotApplied is settle's word that a commit was not and will not be applied while the term goes on.
var errNotApplied = errors.New("not applied")

// settle finds out whether the commit with this mark was applied, for which err was the answer. It gives the commit's
// revision, errNotApplied, ErrDeposed or an *AmbiguousError.
func (t *Term) settle(ctx context.Context, mark []byte, err error) (int64, error) {
	look := t.refence
	if outcomeOf(err) == answered {
		// etcd is done with the transaction, so reading is enough. Writing would be refused.
		look = t.readMarker
	}
	// Renewals may go through while this does not. Then waiting longer helps nobody: another leader may do better.
	giveUp := t.s.boot().Add(t.length)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		found, lerr := look(ctx)
		switch {
		case lerr == nil && bytes.Equal(found.Value, mark):
			return found.ModRevision, nil
		case lerr == nil && t.Valid():
			return 0, errNotApplied
		case lerr == nil:
			return 0, ErrDeposed
		case !t.s.boot().Before(giveUp):
			t.end(fmt.Errorf("a commit could not be settled in %v: %w", t.length, lerr))
		}
		if !t.Valid() {
			return 0, &AmbiguousError{t.Number(), err}
		}
		sleep(ctx, min(pause, t.Remaining()))
	}
}

// refence puts the leader key once more, so that no transaction sent before can be applied any more, and reads the
// commit marker. Where the compare fails, either another leads, which ends the term, or an earlier refence got through
// without our hearing of it; both bar the lost transaction as well.
func (t *Term) refence(ctx context.Context) (marker Entry, err error) {
	leader, mark := t.s.prefix+leaderKey, t.s.marker(t.Number())
	r, err := t.send(ctx, Txn{
		If:   t.fence(),
		Then: []Call{{Key: leader, Value: t.value, Lease: t.lease}, {Key: mark, Read: true}},
		Else: []Call{{Key: leader, Read: true}, {Key: mark, Read: true}},
	})
	if err != nil {
		return Entry{}, err
	}
	if r.Succeeded {
		t.modRevision = r.Revision
		return r.Reads[0], nil
	}
	if r.Reads[0].Lease == t.lease {
		t.modRevision = r.Reads[0].ModRevision
	} else {
		t.lost()
		t.end(errors.New("settling a commit found another leader"))
	}
	return r.Reads[1], nil
}

func (t *Term) readMarker(ctx context.Context) (marker Entry, err error) {
	ctx, cancel, ok := t.bound(ctx)
	defer cancel()
	if !ok {
		return Entry{}, ErrDeposed
	}
	r, err := t.s.kv.Range(ctx, Query{Key: t.s.marker(t.Number())})
	if err != nil || len(r.Entries) == 0 {
		return Entry{}, err
	}
	return r.Entries[0], nil
}

// fence is the one compare of everything a term writes: the leader key is as this term last put it.
func (t *Term) fence() []Compare { return []Compare{{t.s.prefix + leaderKey, t.modRevision}} }

// send makes one transaction if the term goes on, and waits for the answer no longer than it does.
func (t *Term) send(ctx context.Context, txn Txn) (TxnResult, error) {
	ctx, cancel, ok := t.bound(ctx)
	defer cancel()
	if !ok {
		return TxnResult{}, ErrDeposed
	}
	return t.s.kv.Txn(ctx, txn)
}

func (t *Term) bound(ctx context.Context) (context.Context, context.CancelFunc, bool) {
	left := t.Remaining()
	ctx, cancel := context.WithTimeout(ctx, min(t.s.callTimeout, left))
	return ctx, cancel, left > 0
}

// calls turns ops into the operations of a transaction and grants the leases they need, one for each TTL. A lease whose
// key is never put runs out by itself.
func (t *Term) calls(ctx context.Context, ops []Op) ([]Call, error) {
	calls := make([]Call, 0, len(ops)+1)
	leases := map[int64]int64{} // by seconds
	for _, op := range ops {
		c := Call{Key: t.s.prefix + op.Key}
		switch {
		case op.Delete && op.Prefix:
			c.Until = clientv3.GetPrefixRangeEnd(c.Key)
		case !op.Delete:
			c.Value = append([]byte{}, op.Value...)
		}
		if op.TTL > 0 {
			seconds := int64(math.Ceil(op.TTL.Seconds()))
			if leases[seconds] == 0 {
				cctx, cancel, ok := t.bound(ctx)
				if !ok {
					cancel()
					return nil, ErrDeposed
				}
				lease, _, err := t.s.kv.Grant(cctx, seconds)
				cancel()
				if err != nil {
					return nil, fmt.Errorf("commit not sent: lease for %s: %w", op.Key, err)
				}
				leases[seconds] = lease
			}
			c.Lease = leases[seconds]
		}
		calls = append(calls, c)
	}
	return calls, nil
}

func newNonce() string { return rand.Text() }
