package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/etcdtest"
	"github.com/assay-gpu/assay/coordinator/store/faults"
	"pgregory.net/rapid"
)

// changes are all changes under a prefix since a revision, in order.
func changes(t testing.TB, s *store.Store, prefix string, from int64) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// The end marker of the history is the one change that this makes itself, in a key nobody else has.
	end, err := s.Campaign(ctx, "historian", "", lease)
	if err != nil {
		t.Fatal(err)
	}
	last, err := end.Commit(ctx, []store.Op{put(prefix+"~end", "x")})
	if err != nil {
		t.Fatal(err)
	}
	if err := end.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	w := s.Watch(ctx, prefix, from)
	var got []string
	for events := range w.C {
		for _, e := range events {
			if e.ModRevision == last {
				return got
			}
			got = append(got, show([]store.Event{e}))
		}
	}
	t.Fatalf("watch: %v", w.Err())
	return nil
}

// Five commits, each of their calls failing in turn in each way, the late ones arriving one to three calls later:
// every commit succeeds, and the store's history has each once and in order.
func TestEveryCallOfACommitFails(t *testing.T) {
	slow(t)
	const commits = 5
	var want []string
	for i := range commits {
		want = append(want, fmt.Sprintf("n/count=%d", i), fmt.Sprintf("n/%d=x", i))
	}
	for _, mode := range faults.Modes {
		for later := 1; later == 1 || mode == faults.AppliedLate && later <= 3; later++ {
			fired := 0
			for n := 1; ; n++ {
				name := fmt.Sprintf("call %d %v, %d on", n, mode, later)
				inj := faults.New(0, mode)
				inj.Later = later
				s := open(t, store.Config{Wrap: inj.Wrap, Prefix: fmt.Sprintf("/%s/%s/", t.Name(), name)})
				term := lead(t, s, "a")
				first := commit(t, term, put("begin", "x"))
				inj.Arm(n, mode)
				for i := range commits {
					rev, err := term.Commit(t.Context(), []store.Op{put("n/count", fmt.Sprint(i)), put(fmt.Sprintf("n/%d", i), "x")})
					if err != nil {
						t.Errorf("%s: commit %d: %v", name, i, err)
					} else if e, err := s.Get(t.Context(), "n/count"); err != nil && !inj.Fired() || err == nil && e.ModRevision != rev {
						t.Errorf("%s: commit %d says revision %d, the key has %d (%v)", name, i, rev, e.ModRevision, err)
					}
				}
				if err := inj.Flush(); err != nil {
					t.Errorf("%s: the late call: %v", name, err)
				}
				if !inj.Fired() {
					break
				}
				fired++
				if err := term.Resign(t.Context()); err != nil {
					t.Fatal(err)
				}
				equal(t, name, strings.Join(changes(t, s, "n/", first), " "), strings.Join(want, " "))
			}
			if fired < 2*commits { // a transaction and a read each
				t.Errorf("%v: only %d calls failed", mode, fired)
			}
		}
	}
}

// Each call of a campaign failing in turn: it is won all the same, once, and the winner can commit.
func TestEveryCallOfACampaignFails(t *testing.T) {
	slow(t)
	for _, mode := range faults.Modes {
		for later := 1; later == 1 || mode == faults.AppliedLate && later <= 2; later++ {
			for n := 1; ; n++ {
				name := fmt.Sprintf("call %d %v, %d on", n, mode, later)
				inj := faults.New(0, mode)
				inj.Later = later
				s := open(t, store.Config{Wrap: inj.Wrap, Prefix: fmt.Sprintf("/%s/%s/", t.Name(), name)})
				inj.Arm(n, mode)
				term := lead(t, s, "a")
				fired := inj.Fired()
				if term.Number() != 1 {
					t.Errorf("%s: term %d", name, term.Number())
				}
				commit(t, term, put("a", "x"))
				_ = inj.Flush() // a late call may well fail: what it wanted is done
				commit(t, term, put("a", "y"))
				leader, err := s.Leader(t.Context())
				if err != nil || leader.Term != term.Number() || leader.Name != "a" {
					t.Errorf("%s: leader %+v, %v", name, leader, err)
				}
				if !fired {
					if n < 4 {
						t.Errorf("a campaign made only %d calls: %q", n-1, inj.Names())
					}
					break
				}
			}
		}
	}
}

// From the commit on nothing but lease renewals gets through. The commit is said to be unknown after the length of a
// lease, which ends the term; another leads then and sees what became of it.
func TestCommitNeverSettled(t *testing.T) {
	slow(t)
	for _, mode := range faults.Modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			inj := faults.New(0, mode)
			s := open(t, store.Config{Wrap: inj.Wrap})
			healthy := open(t, store.Config{})
			term := lead(t, s, "a")
			commit(t, term, put("n/a", "0"))
			inj.Crash = true
			inj.Arm(1, mode)
			_, err := term.Commit(t.Context(), []store.Op{put("n/a", "1")})
			var ambiguous *store.AmbiguousError
			if !errors.As(err, &ambiguous) || term.Valid() {
				t.Fatalf("commit: %v, and the term goes on: %v", err, term.Valid())
			}
			if err := inj.Flush(); err != nil { // it went out with the first try to settle
				t.Error(err)
			}
			if err := term.Resign(t.Context()); err == nil {
				t.Error("the lease was given back over a dead network")
			}
			next := lead(t, healthy, "b")
			want := map[faults.Mode]string{faults.NotApplied: "0", faults.AppliedError: "1", faults.AppliedLate: "1"}[mode]
			equal(t, "the key", contents(t, healthy, "n/"), map[string]string{"n/a": want})
			commit(t, next, put("n/a", "2"))
		})
	}
}

// etcd answers "no space" also for the very transaction that reached its quota, which it has applied.
func TestFullEtcd(t *testing.T) {
	slow(t)
	s := open(t, store.Config{Endpoints: etcdtest.Start(t, "--quota-backend-bytes", fmt.Sprint(16<<20)).Endpoints})
	term := lead(t, s, "a")
	var want []string
	var full *store.FullError
	for i := 0; full == nil; i++ {
		op := store.Op{Key: fmt.Sprintf("n/%03d", i), Value: make([]byte, 1<<20)}
		_, err := term.Commit(t.Context(), []store.Op{op})
		switch {
		case err == nil:
			want = append(want, op.Key)
		case !errors.As(err, &full):
			t.Fatal(err)
		}
		if i > 100 {
			t.Fatal("etcd does not get full")
		}
	}
	if !term.Valid() || !strings.Contains(full.Hint(), "quota") {
		t.Errorf("valid %v, hint %q", term.Valid(), full.Hint())
	}
	var got []string
	entries, _, err := s.List(t.Context(), "n/")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Key)
	}
	equal(t, "what is there", got, want)
}

// A random story of commits, faults and changes of leader: the history is that of a model that only knows what the
// commits said.
func TestExactlyOnce(t *testing.T) {
	slow(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		inj := faults.New(0, faults.NotApplied)
		s := open(t, store.Config{Wrap: inj.Wrap, Prefix: fmt.Sprintf("/%s/%d/", t.Name(), run)})
		term := lead(t, s, "a")
		first := commit(t, term, put("begin", "x"))
		var want []string
		for i := range rapid.IntRange(1, 12).Draw(rt, "commits") {
			if rapid.IntRange(0, 9).Draw(rt, "change of leader") == 0 {
				// Without a fault, which would only make the next one wait for the lease to run out.
				if err := inj.Flush(); err != nil {
					rt.Fatal(err)
				}
				inj.Arm(0, faults.NotApplied)
				if err := term.Resign(t.Context()); err != nil {
					rt.Fatal(err)
				}
				term = lead(t, s, "a")
			}
			if rapid.Bool().Draw(rt, "fault") {
				// Flushed first: arming again must not lose a call that etcd is still to get.
				if err := inj.Flush(); err != nil {
					rt.Fatal(err)
				}
				inj.Later = rapid.IntRange(1, 4).Draw(rt, "later")
				inj.Arm(rapid.IntRange(1, 4).Draw(rt, "nth"), rapid.SampledFrom(faults.Modes).Draw(rt, "mode"))
			}
			key := rapid.SampledFrom([]string{"n/a", "n/b", "n/c"}).Draw(rt, "key")
			if _, err := term.Commit(t.Context(), []store.Op{put(key, fmt.Sprint(i))}); err != nil {
				rt.Fatalf("commit %d: %v", i, err)
			}
			want = append(want, fmt.Sprintf("%s=%d", key, i))
		}
		inj.Arm(0, faults.NotApplied)
		if err := inj.Flush(); err != nil {
			rt.Fatal(err)
		}
		if err := term.Resign(t.Context()); err != nil {
			rt.Fatal(err)
		}
		if got := changes(t, s, "n/", first); strings.Join(got, " ") != strings.Join(want, " ") {
			rt.Fatalf("history\n got %v\nwant %v", got, want)
		}
	})
}
