package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// served runs serve on an empty state directory until ctx ends, and returns when operators can reach it.
func served(t *testing.T, ctx context.Context) (config, <-chan error) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	dir := t.TempDir()
	c := defaults()
	c.StateDir, c.Socket, c.Listen, c.Advertise = filepath.Join(dir, "state"), filepath.Join(dir, "s"), "127.0.0.1:0", "https://127.0.0.1:7420"
	c.WorkloadManager = "none"
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, c, slog.New(slog.NewTextHandler(t.Output(), nil))) }()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(c.Socket); err == nil {
			return c, ended
		}
		if time.Now().After(end) {
			t.Fatal("it does not serve")
		}
	}
}

// A stop that was asked for is no error of etcd's.
func TestServeStopsWhenAsked(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	_, ended := served(t, ctx)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
