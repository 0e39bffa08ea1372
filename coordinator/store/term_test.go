package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/etcdtest"
	"github.com/assay-gpu/assay/coordinator/store/faults"
)

// receive fails the test when nothing comes within limit.
func receive[T any](t *testing.T, c <-chan T, limit time.Duration, what string) T {
	t.Helper()
	select { // a limit of 0: it has to be there
	case v := <-c:
		return v
	default:
	}
	select {
	case v := <-c:
		return v
	case <-time.After(limit):
		t.Fatalf("%s: not within %v", what, limit)
		panic("unreachable")
	}
}

func TestResignHandsOver(t *testing.T) {
	s := open(t, store.Config{})
	first := lead(t, s, "a")
	leader, err := s.Leader(t.Context())
	if want := (store.Leader{Name: "a", URL: "https://a:7420", Term: first.Number()}); err != nil || leader != want {
		t.Errorf("leader %+v, %v; want %+v", leader, err, want)
	}
	won := make(chan *store.Term)
	go func() { won <- lead(t, s, "b") }()
	select {
	case <-won:
		t.Fatal("two leaders")
	case <-time.After(500 * time.Millisecond):
	}
	if err := first.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := receive(t, won, time.Second, "handing over after a resignation")
	if second.Number() <= first.Number() {
		t.Errorf("term %d after %d", second.Number(), first.Number())
	}
	if first.Valid() || first.Remaining() != 0 {
		t.Error("the first term goes on")
	}
	receive(t, first.Done(), 0, "Done of a resigned term")
	if _, err := first.Commit(t.Context(), []store.Op{put("a", "x")}); !errors.Is(err, store.ErrDeposed) {
		t.Errorf("commit in a term that has ended: %v", err)
	}
	if err := first.Resign(t.Context()); err != nil {
		t.Errorf("resigning twice: %v", err)
	}
	commit(t, second, put("a", "y"))
}

// A term lives on over many leases while it is renewed.
func TestLeaseIsKeptAlive(t *testing.T) {
	slow(t)
	s := open(t, store.Config{})
	term := lead(t, s, "a")
	for end := time.Now().Add(2*lease + time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if !term.Valid() {
			t.Fatalf("ended: %v", term.Err())
		}
		if left := term.Remaining(); left <= 0 || left > lease {
			t.Fatalf("%v remain of a lease of %v", left, lease)
		}
	}
	commit(t, term, put("a", "x"))
}

// A machine that slept past the lease knows it from the boot clock, before it asks anybody.
func TestSleptPastTheLease(t *testing.T) {
	var mu sync.Mutex
	now := time.Unix(1000, 0)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	s := open(t, store.Config{Boot: clock})
	term := lead(t, s, "a")
	commit(t, term, put("a", "x"))
	advance := func(d time.Duration) { mu.Lock(); now = now.Add(d); mu.Unlock() }

	advance(2 * time.Second)
	if !term.Valid() {
		t.Fatal("ended within the lease")
	}
	advance(2 * time.Second)
	if term.Valid() {
		t.Fatal("valid past the lease")
	}
	receive(t, term.Done(), 0, "Done")
	if _, err := term.Commit(t.Context(), []store.Op{put("a", "y")}); !errors.Is(err, store.ErrDeposed) {
		t.Errorf("commit: %v", err)
	}
	if err := term.Err(); err == nil || !strings.Contains(err.Error(), "not renewed in time") {
		t.Errorf("why: %v", err)
	}
	// The lease in etcd is alive, since no time has passed there, and still the term stays ended.
	time.Sleep(1500 * time.Millisecond)
	if term.Valid() {
		t.Error("a renewal brought the term back")
	}
}

// A lease that somebody takes away ends the term when the next renewal hears of it.
func TestLeaseTakenAway(t *testing.T) {
	s := open(t, store.Config{})
	term := lead(t, s, "a")
	if err := s.Depose(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := term.Commit(t.Context(), []store.Op{put("a", "x")}); !errors.Is(err, store.ErrDeposed) {
		t.Errorf("commit: %v", err)
	}
	term = lead(t, s, "a")
	if err := s.Depose(t.Context()); err != nil {
		t.Fatal(err)
	}
	receive(t, term.Done(), 2*time.Second, "Done after the lease was revoked")
	if err := s.Depose(t.Context()); err != nil {
		t.Errorf("deposing nobody: %v", err)
	}
	equal(t, "contents", contents(t, s, "a"), map[string]string{})
}

// When etcd stands still, the term ends by the lease's deadline, and a commit under way says that it does not know.
func TestEtcdStandsStill(t *testing.T) {
	slow(t)
	c := etcdtest.Start(t)
	s := open(t, store.Config{Endpoints: c.Endpoints, CallTimeout: 500 * time.Millisecond})
	term := lead(t, s, "a")
	commit(t, term, put("a", "x"))
	c.Members[0].Signal(syscall.SIGSTOP)
	stopped := time.Now()
	result := make(chan error, 1)
	go func() {
		_, err := term.Commit(context.Background(), []store.Op{put("a", "y")})
		result <- err
	}()
	err := receive(t, result, lease, "the commit")
	var ambiguous *store.AmbiguousError
	if !errors.As(err, &ambiguous) || ambiguous.Term != term.Number() {
		t.Errorf("commit: %v", err)
	}
	receive(t, term.Done(), lease-time.Since(stopped), "the term's end")
	c.Members[0].Signal(syscall.SIGCONT)
	next := lead(t, s, "b")
	commit(t, next, put("b", "x"))
}

// A short pause of etcd is bridged: the commit is settled and the term goes on.
func TestEtcdPauses(t *testing.T) {
	slow(t)
	c := etcdtest.Start(t)
	s := open(t, store.Config{Endpoints: c.Endpoints, CallTimeout: 300 * time.Millisecond})
	term := lead(t, s, "a")
	w := s.Watch(t.Context(), "n/", 1)
	for i := range 5 {
		c.Members[0].Signal(syscall.SIGSTOP)
		goesOn := make(chan struct{})
		time.AfterFunc(700*time.Millisecond, func() { c.Members[0].Signal(syscall.SIGCONT); close(goesOn) })
		rev := commit(t, term, put("n/a", fmt.Sprint(i)))
		got := next(t, w, 1)
		if show(got) != fmt.Sprintf("n/a=%d", i) || got[0].ModRevision != rev {
			t.Errorf("commit %d of revision %d: event %s of revision %d", i, rev, show(got), got[0].ModRevision)
		}
		<-goesOn
	}
}

func TestContextEndsTheWaitOnly(t *testing.T) {
	s := open(t, store.Config{})
	term := lead(t, s, "a")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("shutting down")
	cancel(why)
	if _, err := term.Commit(ctx, []store.Op{put("a", "x")}); !errors.Is(err, why) {
		t.Errorf("commit: %v", err)
	}
	if !term.Valid() {
		t.Error("the term ended")
	}
	equal(t, "contents", contents(t, s, "a"), map[string]string{})
	if _, err := s.Campaign(ctx, "b", "", lease); !errors.Is(err, why) {
		t.Errorf("campaign: %v", err)
	}
	if _, err := s.Campaign(t.Context(), "b", "", time.Second); err == nil {
		t.Error("campaign with a lease that etcd cannot give")
	}
}

func TestWatchLeader(t *testing.T) {
	s := open(t, store.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	leaders := s.WatchLeader(ctx)
	equal(t, "at first", receive(t, leaders, time.Second, "nobody"), store.Leader{})
	for _, name := range []string{"a", "b"} {
		term := lead(t, s, name)
		equal(t, "then", receive(t, leaders, time.Second, name), store.Leader{Name: name, URL: "https://" + name + ":7420", Term: term.Number()})
		if err := term.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "after it resigned", receive(t, leaders, time.Second, "nobody"), store.Leader{})
	}
	cancel()
	for range leaders {
	}
}

// Many candidates on one key: never two valid terms at once, and numbers that only rise.
func TestManyCandidates(t *testing.T) {
	var (
		mu      sync.Mutex
		leading int
		numbers []int64
		wg      sync.WaitGroup
	)
	for i := range 5 {
		s := open(t, store.Config{})
		wg.Go(func() {
			for range 4 {
				term, err := s.Campaign(t.Context(), fmt.Sprint(i), "", lease)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				leading++
				if leading != 1 {
					t.Errorf("%d leaders at once", leading)
				}
				numbers = append(numbers, term.Number())
				mu.Unlock()
				if _, err := term.Commit(t.Context(), []store.Op{put("a", fmt.Sprint(i))}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				leading--
				mu.Unlock()
				if err := term.Resign(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(numbers) != 20 {
		t.Fatalf("%d terms, want 20", len(numbers))
	}
	for i, n := range numbers {
		if n != int64(i+1) {
			t.Fatalf("terms %v, want 1 to 20 in order", numbers)
		}
	}
	if markers := contents(t, open(t, store.Config{}), "commit/"); len(markers) > 17 {
		t.Errorf("%d commit markers are kept of 20 terms", len(markers))
	}
}

// Commits from several goroutines take turns, and each is applied.
func TestCommitsTakeTurns(t *testing.T) {
	s := open(t, store.Config{})
	term := lead(t, s, "a")
	var (
		mu        sync.Mutex
		revisions = map[int64]bool{}
		wg        sync.WaitGroup
	)
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				rev, err := term.Commit(t.Context(), []store.Op{put(fmt.Sprintf("n/%d.%d", i, j), "x")})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				revisions[rev] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if keys := len(contents(t, s, "n/")); keys != 80 || len(revisions) != 80 {
		t.Errorf("%d keys at %d revisions, want 80 of each", keys, len(revisions))
	}
}

// A candidate waits quietly, also when the leader key is older than what etcd remembers.
func TestCandidateWaitsQuietly(t *testing.T) {
	slow(t)
	inj := faults.New(0, faults.NotApplied)
	endpoints := etcdtest.Start(t).Endpoints
	s, follower := open(t, store.Config{Endpoints: endpoints}), open(t, store.Config{Endpoints: endpoints, Wrap: inj.Wrap})
	term := lead(t, s, "a")
	commit(t, term, put("a", "1"))
	if err := s.Compact(t.Context(), commit(t, term, put("a", "2"))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	leaders := follower.WatchLeader(ctx)
	ended := make(chan error)
	go func() { _, err := follower.Campaign(ctx, "b", "", lease); ended <- err }()
	if l := receive(t, leaders, time.Second, "the leader"); l.Name != "a" {
		t.Errorf("leader %+v", l)
	}
	time.Sleep(2 * time.Second)
	if n := inj.Calls(); n > 10 {
		t.Errorf("%d calls while there was nothing to do: %q", n, inj.Names()[:10])
	}
	cancel()
	if err := receive(t, ended, 5*time.Second, "the campaign's end"); !errors.Is(err, context.Canceled) {
		t.Errorf("campaign: %v", err)
	}
}
