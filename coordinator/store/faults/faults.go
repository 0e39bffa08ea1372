// Package faults makes one chosen call to etcd go wrong, each way a call can: for tests that fail every call of a story
// in turn and want the same end each time.
//
// Put an [Injector]'s Wrap into store.Config.Wrap, run the story once to learn how many calls it makes, then run it
// with each of them failing:
//
//	for _, mode := range faults.Modes {
//		for n := 1; n <= calls; n++ {
//			inj := faults.New(n, mode)
//			...
//			inj.Flush()
//		}
//	}
//
// Lease renewals and watches are not counted: they run beside the story and would make its numbers differ from run to
// run.
package faults

import (
	"context"
	"fmt"
	"sync"

	"github.com/assay-gpu/assay/coordinator/store"
)

// A Mode is a way for a call to fail. The caller sees an error in each.
type Mode int

const (
	NotApplied   Mode = iota // it never reaches etcd
	AppliedError             // etcd does it, the answer is lost
	AppliedLate              // etcd does it after the error is out: right before the call Injector.Later calls further on
)

// Modes lists every mode.
var Modes = []Mode{NotApplied, AppliedError, AppliedLate}

func (m Mode) String() string {
	switch m {
	case NotApplied:
		return "not applied"
	case AppliedError:
		return "applied but an error returned"
	case AppliedLate:
		return "applied late"
	}
	return fmt.Sprintf("mode %d", int(m))
}

// An Error is what the failed call returns. No part of the store knows it, so it has to be taken for unclear.
type Error struct {
	Call int // its number, from 1
	Name string
	Mode Mode
}

func (e *Error) Error() string {
	return fmt.Sprintf("injected fault: call %d (%s) %v", e.Call, e.Name, e.Mode)
}

// An Injector counts the calls of every store it wraps and fails one of them. It may be used by several stores at once
// and go on over restarts of the process under test, as etcd does.
type Injector struct {
	// Later is for AppliedLate: 1, the default, applies the call right before the next one, 2 before the one after.
	Later int
	// Crash makes every call after the failed one fail too, not applied, until Restart: as when the process dies.
	Crash bool

	mu      sync.Mutex
	fail    int // number of the call to fail; 0: none
	mode    Mode
	calls   int
	names   []string
	fired   bool
	down    bool
	late    func() // the call that is still to be applied
	lateAt  int    // before the call with this number
	lateErr error
}

// New makes an injector that fails call number n, counted from 1, in the given mode. With n 0 it only counts.
func New(n int, mode Mode) *Injector { return &Injector{Later: 1, fail: n, mode: mode} }

// Arm starts the count again and fails the n-th call from now.
func (i *Injector) Arm(n int, mode Mode) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fail, i.mode, i.calls, i.names, i.fired, i.down = n, mode, 0, nil, false, false
}

// Restart ends a Crash.
func (i *Injector) Restart() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = false
}

// Calls is the number of calls so far, the failed one included.
func (i *Injector) Calls() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls
}

// Names lists the calls so far, by kind and first key.
func (i *Injector) Names() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string(nil), i.names...)
}

// Fired reports whether the call to fail was made.
func (i *Injector) Fired() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fired
}

// Flush applies a late call that no further call has pushed out, and gives the error etcd had for the late call.
func (i *Injector) Flush() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.applyLate()
	return i.lateErr
}

// Wrap puts the injector in front of kv.
func (i *Injector) Wrap(kv store.KV) store.KV { return &wrapped{i, kv} }

type wrapped struct {
	i  *Injector
	kv store.KV
}

// Each method keeps what etcd said in variables of its own: a failed call gives nothing but its error, and a late one
// has no caller left.

func (w *wrapped) Txn(ctx context.Context, t store.Txn) (store.TxnResult, error) {
	name := "txn"
	if len(t.Then) > 0 {
		name += " " + t.Then[0].Key
	}
	var got store.TxnResult
	err := w.i.call(ctx, name, func(ctx context.Context) (err error) {
		got, err = w.kv.Txn(ctx, t)
		return err
	})
	if err != nil {
		return store.TxnResult{}, err
	}
	return got, nil
}

func (w *wrapped) Range(ctx context.Context, q store.Query) (store.RangeResult, error) {
	var got store.RangeResult
	err := w.i.call(ctx, "range "+q.Key, func(ctx context.Context) (err error) {
		got, err = w.kv.Range(ctx, q)
		return err
	})
	if err != nil {
		return store.RangeResult{}, err
	}
	return got, nil
}

func (w *wrapped) Grant(ctx context.Context, seconds int64) (lease, granted int64, err error) {
	// Not the results themselves: a call that is applied late writes when this one has long returned.
	var got struct{ lease, granted int64 }
	err = w.i.call(ctx, "grant", func(ctx context.Context) (err error) {
		got.lease, got.granted, err = w.kv.Grant(ctx, seconds)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return got.lease, got.granted, nil
}

func (w *wrapped) Revoke(ctx context.Context, lease int64) error {
	return w.i.call(ctx, "revoke", func(ctx context.Context) error { return w.kv.Revoke(ctx, lease) })
}
