package agent

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"
)

// BenchmarkFlood is a storm of applications' faults on every GPU, from the kernel log to the loop's judgement, line by line.
func BenchmarkFlood(b *testing.B) {
	hw := &fakeHardware{snap: wellSnapshot()}
	kernel := newFakeKernel()
	lines := make([]string, 20_000)
	for i := range lines {
		g := wellGPUs()[i%2]
		lines[i] = fmt.Sprintf("NVRM: Xid (PCI:%s): 31, pid=%d, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS", g.PCI, 4000+i)
	}
	start := time.Now().Add(-time.Hour)
	a, err := New(Config{
		Node: "n1", Version: "test", StateDir: b.TempDir(), BootID: func() (string, error) { return "boot-1", nil }, Clock: func() time.Duration { return time.Since(start) },
		Prober: hw, Kernel: kernel, Events: make(chan DriverEvent), Outbox: &fakeOutbox{}, Permit: &fakePermits{}, Runner: &fakeRunner{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	told := 0
	for b.Loop() {
		kernel.add(lines...)
		told += len(lines)
		for a.handled.Load() < uint64(told) {
			time.Sleep(time.Millisecond)
		}
	}
	stop()
	<-ended
	b.ReportMetric(float64(told)/b.Elapsed().Seconds(), "lines/s")
}
