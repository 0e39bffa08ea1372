package logtext_test

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks/logtext"
)

// TestATimeOfDaySaysMoreThanOneSinceBoot reads lines that bear both, as syslog writes on most distributions. Two of them in
// one second are of one time: were the second read by its time since boot, one root cause would become two.
func TestATimeOfDaySaysMoreThanOneSinceBoot(t *testing.T) {
	want := time.Date(2026, 7, 9, 10, 0, 0, 0, time.UTC)
	for name, before := range map[string]string{
		"syslog": "Jul  9 10:00:00 node-a kernel: ", "RFC 3339": "2026-07-09T10:00:00Z node-a kernel: ",
		"talos": "203.0.113.9: kern: warning: [2026-07-09T10:00:00Z]: ", "dmesg -T": "[Thu Jul  9 10:00:00 2026] ", "dmesg -H": "[Jul09 10:00] ",
	} {
		r := logtext.NewReader(strings.NewReader(before+"[430000.1] one\n"+before+"[430000.2] two\n"+before+"[430009.9] three\n"), logtext.Options{Now: want})
		for _, text := range []string{"one", "two", "three"} {
			l, err := r.Next()
			if err != nil || string(l.Text) != text || !l.At.Equal(want) {
				t.Errorf("%s: %q at %v, %v; want %q at %v", name, l.Text, l.At, err, text, want)
			}
		}
	}
	r := logtext.NewReader(strings.NewReader("[5.5] one\n[5.5] two\n"), logtext.Options{Now: want})
	for range 2 {
		if l, err := r.Next(); err != nil || !l.At.Equal(time.Time{}.Add(5500*time.Millisecond)) {
			t.Errorf("since boot: %v, %v", l.At, err)
		}
	}
}
