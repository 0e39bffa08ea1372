package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks/importrules"
	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/etcdtest"
)

func TestImports(t *testing.T) {
	importrules.Check(t, map[string]string{
		"github.com/assay-gpu/assay/": "the store knows no domain type: its callers turn theirs into keys and bytes",
		"go.etcd.io/etcd/server/":     "the server is package embedded's, for those who want one",
	})
}

func TestCommitThenRead(t *testing.T) {
	s := open(t, store.Config{})
	term := lead(t, s, "a")

	first := commit(t, term, put("nodes/a", "1"), put("nodes/b", "1"), put("certs/a", "x"))
	second := commit(t, term, put("nodes/a", "2"), store.Op{Key: "nodes/b", Delete: true})
	if second <= first {
		t.Errorf("revision %d after %d", second, first)
	}
	equal(t, "nodes", contents(t, s, "nodes/"), map[string]string{"nodes/a": "2"})
	equal(t, "certs", contents(t, s, "certs/"), map[string]string{"certs/a": "x"})

	e, err := s.Get(t.Context(), "nodes/a")
	if err != nil || e.Key != "nodes/a" || string(e.Value) != "2" || e.ModRevision != second {
		t.Errorf("get nodes/a: %+v, %v; want value 2 of revision %d", e, err, second)
	}
	e, err = s.Get(t.Context(), "nodes/b")
	if err != nil || e.ModRevision != 0 || e.Value != nil {
		t.Errorf("get of a deleted key: %+v, %v", e, err)
	}

	commit(t, term, store.Op{Key: "nodes/", Delete: true, Prefix: true}, put("certs/a", ""))
	equal(t, "nodes after their prefix was deleted", contents(t, s, "nodes/"), map[string]string{})
	equal(t, "an empty value is a value", contents(t, s, "certs/"), map[string]string{"certs/a": ""})
}

// A key with a TTL goes by itself, and not before.
func TestTTL(t *testing.T) {
	slow(t)
	s := open(t, store.Config{})
	term := lead(t, s, "a")
	began := time.Now()
	commit(t, term, store.Op{Key: "tokens/x", Value: []byte("s"), TTL: 1500 * time.Millisecond}, store.Op{Key: "tokens/y", Value: []byte("s"), TTL: time.Hour})
	for {
		left := contents(t, s, "tokens/")
		if _, there := left["tokens/x"]; !there {
			equal(t, "tokens left", left, map[string]string{"tokens/y": "s"})
			break
		}
		if time.Since(began) > 10*time.Second {
			t.Fatal("the key is still there")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if took := time.Since(began); took < 1500*time.Millisecond {
		t.Errorf("the key went after %v", took)
	}
}

// List reads page by page, and all pages as of one revision.
func TestListIsOneMoment(t *testing.T) {
	s := open(t, store.Config{})
	term := lead(t, s, "a")
	const keys = 1300
	for generation := range 3 {
		for from := 0; from < keys; from += 100 {
			var ops []store.Op
			for i := from; i < from+100; i++ {
				ops = append(ops, put(fmt.Sprintf("nodes/%05d", i), fmt.Sprint(generation)))
			}
			commit(t, term, ops...)
		}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // flips the first and the last key together
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				if _, err := term.Commit(context.Background(), []store.Op{put("nodes/00000", fmt.Sprint("flip ", i)), put("nodes/01299", fmt.Sprint("flip ", i))}); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range 20 {
		entries, rev, err := s.List(t.Context(), "nodes/")
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) != keys {
			t.Fatalf("%d entries, want %d", len(entries), keys)
		}
		for i, e := range entries {
			if e.Key != fmt.Sprintf("nodes/%05d", i) || e.ModRevision > rev {
				t.Fatalf("entry %d is %s of revision %d in a list of revision %d", i, e.Key, e.ModRevision, rev)
			}
		}
		if a, b := entries[0], entries[keys-1]; !bytes.Equal(a.Value, b.Value) {
			t.Fatalf("two keys that change together: %q and %q", a.Value, b.Value)
		}
	}
}

// The limits are the largest that a stock etcd takes, and one more is refused here.
func TestLimits(t *testing.T) {
	slow(t)
	s := open(t, store.Config{Endpoints: etcdtest.Start(t).Endpoints, Prefix: store.DefaultPrefix})
	term := lead(t, s, "a")
	ops := make([]store.Op, store.MaxOps)
	size := 0
	for i := range ops {
		ops[i] = put(fmt.Sprintf("nodes/%03d", i), "x")
		size += len(store.DefaultPrefix) + len(ops[i].Key) + 1
	}
	ops[0].Value = make([]byte, store.MaxBytes-size+1)
	commit(t, term, ops...)

	var big *store.TooBigError
	ops[0].Value = append(ops[0].Value, 0)
	if _, err := term.Commit(t.Context(), ops); !errors.As(err, &big) || big.Bytes != store.MaxBytes+1 {
		t.Errorf("one byte more: %v", err)
	}
	ops[0].Value = nil
	if _, err := term.Commit(t.Context(), append(ops, put("nodes/more", "x"))); !errors.As(err, &big) || big.Ops != store.MaxOps+1 {
		t.Errorf("one operation more: %v", err)
	} else if !strings.Contains(big.Hint(), "split") {
		t.Errorf("hint: %s", big.Hint())
	}
	if !term.Valid() {
		t.Error("a commit that is too big ended the term")
	}
}

func TestWrongOps(t *testing.T) {
	s := open(t, store.Config{})
	term := lead(t, s, "a")
	for _, c := range []struct {
		name string
		ops  []store.Op
		want string
	}{
		{"empty key", []store.Op{put("", "x")}, `key "": is empty`},
		{"the leader key", []store.Op{put("leader", "x")}, `key "leader": is the store's own`},
		{"the term key", []store.Op{{Key: "term", Delete: true}}, `key "term": is the store's own`},
		{"a commit marker", []store.Op{put("commit/1", "x")}, `key "commit/1": is the store's own`},
		{"a prefix with the leader key in it", []store.Op{{Key: "lea", Delete: true, Prefix: true}}, `key "lea": is the store's own`},
		{"a prefix with the markers in it", []store.Op{{Key: "commit", Delete: true, Prefix: true}}, `key "commit": is the store's own`},
		{"a key twice", []store.Op{put("a", "x"), {Key: "a", Delete: true}}, `key "a": is changed twice`},
		{"a key in a deleted prefix", []store.Op{{Key: "a/", Delete: true, Prefix: true}, put("a/b", "x")}, `key "a/b": is changed twice`},
		{"a delete with a value", []store.Op{{Key: "a", Value: []byte("x"), Delete: true}}, "neither value nor TTL"},
		{"a put of a prefix", []store.Op{{Key: "a", Value: []byte("x"), Prefix: true}}, "only a delete has a prefix"},
		{"a negative TTL", []store.Op{{Key: "a", Value: []byte("x"), TTL: -1}}, "negative TTL"},
	} {
		_, err := term.Commit(t.Context(), c.ops)
		var wrong *store.OpError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	commit(t, term, put("a", "the term goes on"))
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	_, err := store.Open(t.Context(), store.Config{Endpoints: []string{"unix:///nowhere/etcd.sock"}, DialTimeout: 300 * time.Millisecond})
	var unreachable *store.UnreachableError
	if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "no answer within 300ms") || !strings.Contains(unreachable.Hint(), "unix:///nowhere/etcd.sock") {
		t.Errorf("no etcd there: %v", err)
	}
	if _, err := store.Open(t.Context(), store.Config{}); err == nil || !strings.Contains(err.Error(), "no endpoint") {
		t.Errorf("no endpoint: %v", err)
	}
	if _, err := store.Open(t.Context(), store.Config{Endpoints: endpoints(t), Prefix: "/assay"}); err == nil || !strings.Contains(err.Error(), "slash") {
		t.Errorf("a prefix without slash: %v", err)
	}
}
