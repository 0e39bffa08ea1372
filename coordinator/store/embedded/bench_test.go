package embedded_test

import (
	"syscall"
	"testing"
	"time"
)

// cpu is the time this process has had on processors.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkIdle measures what a server with one client and one leader costs when nothing happens, over 20 s.
func BenchmarkIdle(b *testing.B) {
	srv, s := serve(b, b.TempDir())
	defer srv.Close()
	defer s.Close()
	if _, err := s.Campaign(b.Context(), "a", "", 4*time.Second); err != nil {
		b.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	for b.Loop() {
		before, began := cpu(b), time.Now()
		time.Sleep(20 * time.Second)
		b.ReportMetric(100*(cpu(b)-before).Seconds()/time.Since(began).Seconds(), "%core")
	}
}

// BenchmarkStart measures from nothing to a server that answers, on data that is there already.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		srv, s := serve(b, dir)
		s.Close()
		srv.Close()
	}
}
