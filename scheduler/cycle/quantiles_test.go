package cycle

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// quantiles reports the median and the 99th percentile in milliseconds.
func quantiles(b *testing.B, took []time.Duration, what string) {
	b.Helper()
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) / 1000 }
	b.ReportMetric(at(0.5), what+"-p50-ms")
	b.ReportMetric(at(0.99), what+"-p99-ms")
}

// cpu is the processor time of this process so far: on a machine that others use as well, it says what the work costs.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
