package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/embedded"
)

// A real etcd with a small quota is filled: orders are refused with a word that says why, somebody is paged although nothing
// can be written, and then the coordinator makes room by itself and goes on in the same term.
func TestAFullStoreIsToldAndMended(t *testing.T) {
	const quota = 24 << 20
	srv, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Quota: quota, Logger: quietLog()})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	st, err := store.Open(t.Context(), store.Config{Endpoints: srv.Endpoints, Prefix: "/full/", Logger: quietLog()})
	if err != nil {
		t.Fatal(err)
	}
	s := startSiteWith(t, newPlant("gpu001"), "/full/", nil, func(c *Config) {
		c.Store, c.OwnStore, c.SpaceEvery, c.Slurm = st, true, 3*time.Second, nil
	})
	s.certify("gpu001")
	_, _, term := s.coord.Leader()

	raw, err := clientv3.New(clientv3.Config{Endpoints: srv.Endpoints, DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	block := string(make([]byte, 1<<20))
	fill := func() {
		for range 2 * quota >> 20 {
			if _, err := raw.Put(t.Context(), "/others/block", block); err != nil {
				return // no space: the rest is free pages and old revisions
			}
		}
		t.Fatal("it does not fill")
	}
	var full *store.FullError
	for try := 0; ; try++ {
		fill()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := s.coord.Freeze(ctx, "alice", "look")
		cancel()
		if errors.As(err, &full) {
			break
		}
		if try == 5 {
			t.Fatalf("an order to a full store: %v", err)
		}
	}
	if full.Status() != 507 || full.Hint() == "" {
		t.Errorf("status %d, hint %q", full.Status(), full.Hint())
	}
	s.try("freeze", func(ctx context.Context) error { _, err := s.coord.Freeze(ctx, "alice", "look"); return err })
	s.try("room", func(context.Context) error {
		snap := s.coord.snapshot()
		if snap.StoreFull || snap.StoreQuota != quota || snap.StoreSize == 0 || snap.StoreSize > quota/2 {
			return fmt.Errorf("store %+v", snap)
		}
		return nil
	})
	s.mu.Lock()
	pages := slices.Clone(s.pages)
	s.mu.Unlock()
	if !slices.Contains(pages, "store_full ") {
		t.Errorf("pages %v", pages)
	}
	if _, mine, now := s.coord.Leader(); !mine || now != term {
		t.Errorf("term %d became %d, leading %v", term, now, mine)
	}
	s.until("gpu001", "certified still", healthy)
}

func TestWhatIsFragmented(t *testing.T) {
	for _, c := range []struct {
		name       string
		used, size int64
		want       bool
	}{
		{"a small file is left alone", 1 << 20, 255 << 20, false}, {"half of it in use", 128 << 20, 256 << 20, false}, {"most of it free", 127 << 20, 256 << 20, true},
	} {
		if got := (store.Space{Used: c.used, Size: c.size}).Fragmented(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
