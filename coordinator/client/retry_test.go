package client_test

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A write whose answer is lost, and that then meets an election, is sent again under the key it was first sent with; a read
// has none and is not.
func TestAWriteIsSentAgainUnderItsKey(t *testing.T) {
	var keys []string
	sock := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get(wire.IdempotencyKey))
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		switch len(keys) {
		case 1:
			panic(http.ErrAbortHandler) // taken, and the connection is gone before the answer
		case 2:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(wire.Problem{Status: 503, Detail: "no leader is known at present"})
		default:
			_ = json.NewEncoder(w).Encode(wire.Guard{Frozen: true})
		}
	}))
	h.Listener = ln
	h.Start()
	defer h.Close()
	c := client.Unix(sock)
	defer c.Close()
	g, err := c.Freeze(t.Context(), "look")
	if err != nil || !g.Frozen {
		t.Fatalf("%+v, %v", g, err)
	}
	if len(keys) != 3 || keys[0] == "" || keys[1] != keys[0] || keys[2] != keys[0] {
		t.Errorf("keys %q, want one three times", keys)
	}
	if _, err := c.Freeze(t.Context(), "look"); err != nil || keys[3] == keys[0] {
		t.Errorf("the next write: %v, keys %q", err, keys)
	}
	n := len(keys)
	if _, err := c.Guard(t.Context()); err == nil || len(keys) != n+1 || keys[n] != "" {
		t.Errorf("a read: %v, keys %q", err, slices.Clone(keys[n:]))
	}
}

// Where nobody listens a write fails at once: nothing was sent.
func TestAWriteToNobodyIsNotWaitedFor(t *testing.T) {
	c := client.Unix(filepath.Join(t.TempDir(), "none"))
	defer c.Close()
	began := time.Now()
	_, err := c.Freeze(t.Context(), "look")
	var lost *client.UnreachableError
	if !errors.As(err, &lost) || time.Since(began) > 2*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}
