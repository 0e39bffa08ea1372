package main

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"
)

// An address for metrics that another has is told and waited for: an agent that ended by it would leave its node unchecked.
func TestATakenMetricsAddressStopsNoAgent(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serveMetrics(ctx, other.Addr().String(), parts{}, slog.New(slog.DiscardHandler)) }()
	select {
	case err := <-done:
		t.Fatalf("it ended with %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("stopped: %v", err)
	}
	if err := serveMetrics(t.Context(), "192.0.2.1:9420", parts{}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("an address that is not this machine's is no fault")
	}
}
