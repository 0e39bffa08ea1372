package embedded_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/embedded"
)

func TestStartStopStart(t *testing.T) {
	dir := t.TempDir()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	for i := range 3 {
		began := time.Now()
		srv, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		started := time.Since(began)
		s, err := store.Open(t.Context(), store.Config{Endpoints: srv.Endpoints, Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("start %d: %v, open %v", i, started, time.Since(began))
		term, err := s.Campaign(t.Context(), "a", "https://a", 4*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("lead %v", time.Since(began))
		if term.Number() != int64(i+1) {
			t.Errorf("term %d, want %d", term.Number(), i+1)
		}
		began = time.Now()
		if _, err := term.Commit(t.Context(), []store.Op{{Key: "nodes/a", Value: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
		t.Logf("commit %v", time.Since(began))
		if err := term.Resign(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.Close()
		srv.Close()
	}
}
