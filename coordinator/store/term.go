package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// deadlineSlack is taken off every lease renewal for clocks that do not run at the same rate: 50 ms of 3 s is 1.7 %,
// fifty times what two bad quartzes differ by.
const deadlineSlack = 50 * time.Millisecond

// A Term is one process's time as leader. It ends once and for ever: when the lease was not renewed in time, when etcd
// says the lease is gone, when a commit finds another leader or cannot be settled, or by Resign.
type Term struct {
	s      *Store
	leader Leader
	lease  int64
	length time.Duration // of the lease
	value  []byte        // of the leader key

	// turn is held by the commit under way; what follows it belongs to its holder.
	turn        chan struct{}
	modRevision int64  // of the leader key
	nonce       string // this term's commits, and nobody else's
	commits     int64

	mu       sync.Mutex
	deadline time.Time // boot clock: until then the lease certainly lives
	ended    bool
	gone     bool // the lease is known to be gone from etcd
	why      error
	done     chan struct{}
	stop     context.CancelFunc // ends the renewals
}

func newTerm(s *Store, l Leader, key Entry, length time.Duration, expires time.Time) *Term {
	ctx, stop := context.WithCancel(context.Background())
	t := &Term{
		s: s, leader: l, lease: key.Lease, length: length, value: key.Value,
		turn: make(chan struct{}, 1), modRevision: key.ModRevision, nonce: newNonce(),
		deadline: expires.Add(-deadlineSlack), done: make(chan struct{}), stop: stop,
	}
	go t.keepAlive(ctx)
	go t.expire()
	return t
}

// Number is the term's number. It rises by at least one from each leader to the next, also over restarts.
func (t *Term) Number() int64 { return t.leader.Term }

// Done is closed when the term ends: by the deadline at the latest, while the lease in etcd still keeps others out. A
// process that was stopped or slept finds it closed a moment after it wakes; ask Valid where that moment matters.
func (t *Term) Done() <-chan struct{} { return t.done }

// Valid reports whether the term goes on, by the boot clock at the time of the call. Ask it right before every act
// outside etcd. True means that nobody else leads now.
func (t *Term) Valid() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended && !t.s.boot().Before(t.deadline) {
		t.endLocked(errors.New("the lease was not renewed in time"))
	}
	return !t.ended
}

// Remaining is how long the term lasts if the lease is not renewed again; 0 if it has ended.
func (t *Term) Remaining() time.Duration {
	if !t.Valid() {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, t.deadline.Sub(t.s.boot()))
}

// Err says why the term ended; nil while it goes on.
func (t *Term) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// Resign ends the term, waits for the commit under way, and gives the lease back so that another can lead at once.
// Resigning from a term that has ended gives back what may be left of the lease.
func (t *Term) Resign(ctx context.Context) error {
	t.end(errors.New("resigned"))
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return fmt.Errorf("resign: a commit is under way: %w", context.Cause(ctx))
	}
	t.mu.Lock()
	gone := t.gone
	t.mu.Unlock()
	if gone {
		return nil
	}
	ctx, cancel := t.s.call(ctx)
	defer cancel()
	if err := t.s.kv.Revoke(ctx, t.lease); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("resign: revoke lease: %w", causeOf(ctx, err))
	}
	t.lost()
	return nil
}

// lost notes that the lease is gone from etcd.
func (t *Term) lost() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
}

func (t *Term) end(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked(why)
}

func (t *Term) endLocked(why error) {
	if t.ended {
		return
	}
	t.ended, t.why = true, why
	t.stop()
	close(t.done)
	t.s.log.Info("term ended", "term", t.leader.Term, "reason", why)
}

// keepAlive renews the lease four times in its length, and faster while that fails. A try takes a third of the time left
// at most: with several etcd members the next try goes to another one, which may be better off.
func (t *Term) keepAlive(ctx context.Context) {
	pause := t.renewEvery()
	for {
		sleep(ctx, pause)
		if !t.Valid() {
			return
		}
		sent := t.s.boot()
		cctx, cancel := context.WithTimeout(ctx, max(t.Remaining()/3, 100*time.Millisecond))
		r, err := t.s.client.KeepAliveOnce(cctx, clientv3.LeaseID(t.lease))
		cancel()
		switch {
		case err == nil:
			// etcd counts from when it got the request, so counting from before it was sent is on the safe side.
			t.extend(sent.Add(time.Duration(r.TTL)*time.Second - deadlineSlack))
			pause = t.renewEvery()
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			t.lost()
			t.end(errors.New("etcd has ended the lease"))
			return
		case ctx.Err() != nil:
			return
		default:
			t.s.log.Warn("lease not renewed", "term", t.leader.Term, "err", err)
			pause = 100 * time.Millisecond
		}
	}
}

// renewEvery is a quarter of what a renewal gives.
func (t *Term) renewEvery() time.Duration { return max(t.Remaining()/4, 100*time.Millisecond) }

// extend moves the deadline, never back, and never for a term that has ended.
func (t *Term) extend(to time.Time) {
	if !t.Valid() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if to.After(t.deadline) {
		t.deadline = to
	}
}

// expire ends the term at its deadline, or when the store is closed.
func (t *Term) expire() {
	for {
		left := t.Remaining()
		if left == 0 && !t.Valid() {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-t.s.closed:
			timer.Stop()
			t.end(errors.New("the store was closed"))
			return
		case <-t.done:
			timer.Stop()
			return
		}
	}
}
