package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/embedded"
)

// lease is what DESIGN gives leaders.
const lease = 4 * time.Second

var shared struct {
	sync.Once
	dir    string
	server *embedded.Server
	err    error
}

// TestMain runs the tests, or the child process that some of them kill and stop.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	code := m.Run()
	if shared.server != nil {
		shared.server.Close()
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// endpoints gives one etcd for all tests that do not mistreat it.
func endpoints(t testing.TB) []string {
	t.Helper()
	shared.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "store"); shared.err == nil {
			shared.server, shared.err = embedded.Start(context.Background(), embedded.Config{Dir: shared.dir})
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server.Endpoints
}

// slow marks a test that mostly waits: for leases to run out, for processes to die.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("waits for leases to run out")
	}
	t.Parallel()
}

func logger(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// open opens a store under a prefix that is the test's own.
func open(t testing.TB, cfg store.Config) *store.Store {
	t.Helper()
	if cfg.Endpoints == nil {
		cfg.Endpoints = endpoints(t)
	}
	if cfg.Prefix == "" {
		cfg.Prefix = "/" + t.Name() + "/"
	}
	if cfg.Logger == nil {
		cfg.Logger = logger(t)
	}
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// lead campaigns until it leads.
func lead(t testing.TB, s *store.Store, name string) *store.Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*lease)
	defer cancel()
	term, err := s.Campaign(ctx, name, "https://"+name+":7420", lease)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = term.Resign(ctx) // the test may have made that impossible
	})
	return term
}

func put(key, value string) store.Op { return store.Op{Key: key, Value: []byte(value)} }

func commit(t testing.TB, term *store.Term, ops ...store.Op) int64 {
	t.Helper()
	rev, err := term.Commit(context.Background(), ops)
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return rev
}

// contents reads all keys under a prefix.
func contents(t testing.TB, s *store.Store, prefix string) map[string]string {
	t.Helper()
	entries, _, err := s.List(context.Background(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		got[e.Key] = string(e.Value)
	}
	return got
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}
