package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/etcdtest"
)

// show renders events so that a test can compare them.
func show(events []store.Event) string {
	var parts []string
	for _, e := range events {
		if e.Deleted {
			parts = append(parts, "-"+e.Key)
		} else {
			parts = append(parts, e.Key+"="+string(e.Value))
		}
	}
	return strings.Join(parts, " ")
}

// next receives until it has n events, or fails.
func next(t *testing.T, w *store.Watch, n int) []store.Event {
	t.Helper()
	var got []store.Event
	for len(got) < n {
		select {
		case events, ok := <-w.C:
			if !ok {
				t.Fatalf("watch ended: %v", w.Err())
			}
			got = append(got, events...)
		case <-time.After(15 * time.Second):
			t.Fatalf("no event after %s", show(got))
		}
	}
	return got
}

func TestWatch(t *testing.T) {
	s := open(t, store.Config{})
	term := lead(t, s, "a")
	commit(t, term, put("nodes/a", "before"))
	_, rev, err := s.List(t.Context(), "nodes/")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	w := s.Watch(ctx, "nodes/", rev+1)
	commit(t, term, put("nodes/a", "1"), put("nodes/b", "1"), put("certs/a", "not watched"))
	last := commit(t, term, store.Op{Key: "nodes/b", Delete: true})
	got := next(t, w, 3)
	equal(t, "events", show(got), "nodes/a=1 nodes/b=1 -nodes/b")
	if got[2].ModRevision != last {
		t.Errorf("deletion at revision %d, want %d", got[2].ModRevision, last)
	}
	stop := errors.New("seen enough")
	cancel(stop)
	for range w.C {
	}
	if !errors.Is(w.Err(), stop) {
		t.Errorf("ended with %v", w.Err())
	}
}

// A watch bridges the death and return of etcd without gap or repetition.
func TestWatchOutlivesEtcd(t *testing.T) {
	slow(t)
	c := etcdtest.Start(t)
	s := open(t, store.Config{Endpoints: c.Endpoints})
	w := s.Watch(t.Context(), "n/", 1)
	want := []string{}
	for round := range 3 {
		term := lead(t, s, fmt.Sprint("leader ", round))
		for i := range 5 {
			commit(t, term, put("n/a", fmt.Sprintf("%d.%d", round, i)))
			want = append(want, fmt.Sprintf("n/a=%d.%d", round, i))
		}
		equal(t, "events", show(next(t, w, 5)), strings.Join(want[len(want)-5:], " "))
		c.Members[0].Kill()
		c.Members[0].Start()
		c.WaitReady()
		if err := s.Depose(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWatchFromCompactedRevision(t *testing.T) {
	slow(t)
	s := open(t, store.Config{Endpoints: etcdtest.Start(t).Endpoints})
	term := lead(t, s, "a")
	first := commit(t, term, put("n/a", "1"))
	last := commit(t, term, put("n/a", "2"))
	if err := s.Compact(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(t.Context(), last); err != nil {
		t.Errorf("compacting twice: %v", err)
	}
	w := s.Watch(t.Context(), "n/", first)
	for range w.C {
		t.Error("event from a compacted revision")
	}
	var compacted *store.CompactedError
	if !errors.As(w.Err(), &compacted) || compacted.Asked != first || compacted.Oldest != last {
		t.Errorf("ended with %v, want a compaction at %d", w.Err(), last)
	}
	equal(t, "what the keys are now", contents(t, s, "n/"), map[string]string{"n/a": "2"})
}

// Compaction run by the leader stays one interval behind.
func TestCompactEvery(t *testing.T) {
	slow(t)
	s := open(t, store.Config{Endpoints: etcdtest.Start(t).Endpoints})
	term := lead(t, s, "a")
	first := commit(t, term, put("n/a", "1"))
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() { defer close(ran); s.CompactEvery(ctx, 100*time.Millisecond) }()
	deadline := time.Now().Add(10 * time.Second)
	for n := 2; ; n++ {
		commit(t, term, put("n/a", fmt.Sprint(n)))
		time.Sleep(50 * time.Millisecond)
		wctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		w := s.Watch(wctx, "n/", first)
		for range w.C {
		}
		stop()
		var compacted *store.CompactedError
		if errors.As(w.Err(), &compacted) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was compacted")
		}
	}
	cancel()
	<-ran
}
