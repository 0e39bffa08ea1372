package e2e

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// times are how long one thing took, over and over.
type times []time.Duration

// at is the quantile q by the nearest rank: 0.99 of 500 is the 495th.
func (ts times) at(q float64) time.Duration {
	if len(ts) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(ts))
	return s[min(len(s)-1, max(0, int(q*float64(len(s))+0.999999)-1))]
}

func (ts times) String() string {
	return fmt.Sprintf("p50 %s, p99 %s, most %s of %d", ms(ts.at(0.5)), ms(ts.at(0.99)), ms(ts.at(1)), len(ts))
}

// report gives the benchmark's output the quantiles in milliseconds.
func (ts times) report(b *testing.B, name string) {
	b.ReportMetric(float64(ts.at(0.5).Microseconds())/1000, name+"-p50-ms")
	b.ReportMetric(float64(ts.at(0.99).Microseconds())/1000, name+"-p99-ms")
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

// verdict says a goal, what was reached, and whether that is within it. It fails nothing: a wall-clock figure depends on
// what else the machine does.
func verdict(b *testing.B, what string, got, goal float64, unit string) {
	b.Helper()
	word := "reached"
	if got >= goal {
		word = "MISSED"
	}
	b.Logf("%s: %.4g %s, goal under %.4g: %s", what, got, unit, goal, word)
}

// machine says what the figures were measured on, and what else it did then: without that they mean little.
func machine(b *testing.B) {
	b.Helper()
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d cores; load average of 1, 5 and 15 minutes: %s", runtime.NumCPU(), strings.Join(strings.Fields(string(load))[:3], " "))
}

func TestQuantilesAreNearestRanks(t *testing.T) {
	var ts times
	for i := range 500 {
		ts = append(ts, time.Duration(500-i)*time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 250, 0.99: 495, 1: 500} {
		if got := ts.at(q); got != want*time.Millisecond {
			t.Errorf("quantile %v is %v, want %d ms", q, got, want)
		}
	}
	if got := times(nil).at(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
