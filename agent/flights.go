package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/assay-gpu/assay/checks/catalog"
)

// flights shares snapshots among those who want one at the same time. Nobody gets one that began before he asked, and
// never do two run at once.
type flights struct {
	take  func(context.Context) (catalog.Snapshot, error)
	limit func() time.Duration // for one snapshot; what has not answered by then is unread in it
	wake  chan struct{}

	mu   sync.Mutex
	next *flight // gathers askers until it starts

	hold sync.Mutex // held while a snapshot runs, and by those who want none to run
}

type flight struct {
	done chan struct{}
	snap catalog.Snapshot
	err  error
}

func newFlights(take func(context.Context) (catalog.Snapshot, error), limit func() time.Duration) *flights {
	return &flights{take: take, limit: limit, wake: make(chan struct{}, 1)}
}

// run takes snapshots as they are asked for until ctx ends.
func (f *flights) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		f.hold.Lock()
		f.mu.Lock()
		fl := f.next
		f.next = nil
		f.mu.Unlock()
		if fl != nil {
			limit := f.limit()
			tctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not read within %s", limit))
			fl.snap, fl.err = f.take(tctx)
			cancel()
			close(fl.done)
		}
		f.hold.Unlock()
	}
}

// fresh returns a snapshot that begins after the call. ctx bounds the wait, not the snapshot.
func (f *flights) fresh(ctx context.Context) (catalog.Snapshot, error) {
	f.mu.Lock()
	if f.next == nil {
		f.next = &flight{done: make(chan struct{})}
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
	fl := f.next
	f.mu.Unlock()
	select {
	case <-fl.done:
		return fl.snap, fl.err
	case <-ctx.Done():
		return catalog.Snapshot{}, context.Cause(ctx)
	}
}

// pause keeps snapshots from running until the returned function is called. It waits for the one under way.
func (f *flights) pause() (resume func()) {
	f.hold.Lock()
	return f.hold.Unlock
}
