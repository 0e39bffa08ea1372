package faults_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/faults"
)

// ledger is a KV that notes what reaches it.
type ledger struct{ got []string }

func (l *ledger) Txn(_ context.Context, t store.Txn) (store.TxnResult, error) {
	l.got = append(l.got, "txn "+t.Then[0].Key)
	return store.TxnResult{Succeeded: true, Revision: int64(len(l.got))}, nil
}
func (l *ledger) Range(_ context.Context, q store.Query) (store.RangeResult, error) {
	l.got = append(l.got, "range "+q.Key)
	return store.RangeResult{Revision: int64(len(l.got))}, nil
}
func (l *ledger) Grant(context.Context, int64) (int64, int64, error) {
	l.got = append(l.got, "grant")
	return 7, 3, nil
}
func (l *ledger) Revoke(context.Context, int64) error {
	l.got = append(l.got, "revoke")
	return nil
}

// story makes four calls and gives what each said: a result, or "fault".
func story(kv store.KV) []string {
	var said []string
	note := func(result any, err error) {
		var fault *faults.Error
		switch {
		case errors.As(err, &fault):
			said = append(said, fmt.Sprintf("fault %d %s", fault.Call, fault.Name))
		case err != nil:
			said = append(said, err.Error())
		default:
			said = append(said, fmt.Sprint(result))
		}
	}
	ctx := context.Background()
	lease, _, err := kv.Grant(ctx, 3)
	note(lease, err)
	txn, err := kv.Txn(ctx, store.Txn{Then: []store.Call{{Key: "a"}}})
	note(txn.Revision, err)
	found, err := kv.Range(ctx, store.Query{Key: "b"})
	note(found.Revision, err)
	note("done", kv.Revoke(ctx, 7))
	return said
}

func TestOneCallFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		nth   int
		mode  faults.Mode
		later int
		crash bool
		said  string
		etcd  string // what reached it
		flush string // what reached it after Flush, where that differs
	}{
		{"none", 0, faults.NotApplied, 1, false, "7, 2, 3, done", "grant, txn a, range b, revoke", ""},
		{"not applied", 2, faults.NotApplied, 1, false, "7, fault 2 txn a, 2, done", "grant, range b, revoke", ""},
		{"applied, error returned", 2, faults.AppliedError, 1, false, "7, fault 2 txn a, 3, done", "grant, txn a, range b, revoke", ""},
		{"applied right before the next", 2, faults.AppliedLate, 1, false, "7, fault 2 txn a, 3, done", "grant, txn a, range b, revoke", ""},
		{"applied before the one after", 2, faults.AppliedLate, 2, false, "7, fault 2 txn a, 2, done", "grant, range b, txn a, revoke", ""},
		{"applied after all", 2, faults.AppliedLate, 9, false, "7, fault 2 txn a, 2, done", "grant, range b, revoke", "grant, range b, revoke, txn a"},
		{"a grant", 1, faults.AppliedError, 1, false, "fault 1 grant, 2, 3, done", "grant, txn a, range b, revoke", ""},
		{"a revoke", 4, faults.NotApplied, 1, false, "7, 2, 3, fault 4 revoke", "grant, txn a, range b", ""},
		{"crash", 2, faults.AppliedError, 1, true, "7, fault 2 txn a, fault 3 range b, fault 4 revoke", "grant, txn a", ""},
		{"crash with a late call", 2, faults.AppliedLate, 2, true, "7, fault 2 txn a, fault 3 range b, fault 4 revoke", "grant, txn a", ""},
	} {
		var etcd ledger
		inj := faults.New(c.nth, c.mode)
		inj.Later, inj.Crash = c.later, c.crash
		said := strings.Join(story(inj.Wrap(&etcd)), ", ")
		if said != c.said {
			t.Errorf("%s: the caller saw %s, want %s", c.name, said, c.said)
		}
		if got := strings.Join(etcd.got, ", "); got != c.etcd {
			t.Errorf("%s: etcd got %s, want %s", c.name, got, c.etcd)
		}
		if err := inj.Flush(); err != nil {
			t.Errorf("%s: flush: %v", c.name, err)
		}
		if got := strings.Join(etcd.got, ", "); c.flush != "" && got != c.flush {
			t.Errorf("%s: after Flush etcd got %s, want %s", c.name, got, c.flush)
		}
		if inj.Calls() != 4 || inj.Fired() != (c.nth > 0) {
			t.Errorf("%s: %d calls, fired %v", c.name, inj.Calls(), inj.Fired())
		}
	}
}

func TestArmAndRestart(t *testing.T) {
	var etcd ledger
	inj := faults.New(1, faults.NotApplied)
	inj.Crash = true
	kv := inj.Wrap(&etcd)
	story(kv)
	if len(etcd.got) != 0 {
		t.Errorf("etcd got %q during the crash", etcd.got)
	}
	inj.Restart()
	story(kv)
	if len(etcd.got) != 4 || inj.Calls() != 8 {
		t.Errorf("after the restart etcd got %q in %d calls", etcd.got, inj.Calls())
	}
	inj.Arm(4, faults.NotApplied)
	story(kv)
	if len(etcd.got) != 7 || inj.Calls() != 4 || len(inj.Names()) != 4 || inj.Names()[3] != "revoke" {
		t.Errorf("armed again: etcd got %q in %d calls %q", etcd.got, inj.Calls(), inj.Names())
	}
	for _, m := range faults.Modes {
		if strings.HasPrefix(m.String(), "mode") {
			t.Errorf("mode %d has no name", int(m))
		}
	}
}
