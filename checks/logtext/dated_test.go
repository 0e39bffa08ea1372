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

// TestPrefixes reads one message behind what tools write before it; who wrote it the prefix tells, and when.
func TestPrefixes(t *testing.T) {
	const none = "left aside"
	day := time.Date(2026, 7, 9, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		line string
		at   time.Time
		text string
	}{
		{"<4>1 2026-07-09T10:00:00Z node-a kernel - - - NVRM: one", day, "NVRM: one"},
		{"<4>1 2026-07-09T12:00:00.5+02:00 node-a kernel 0 - - \xef\xbb\xbf[  12.5] NVRM: one", day.Add(time.Second / 2), "NVRM: one"},
		{`<4>1 2026-07-09T10:00:00Z node-a kernel - - [meta sequenceId="29"][o@1 a="]\" x"] NVRM: one`, day, "NVRM: one"},
		{"<30>1 2026-07-09T10:00:00Z node-a nv-fabricmanager 77 - - detected", day, "detected"},
		{"<30>Jul  9 10:00:00 node-a nv-fabricmanager[77]: detected", day, "detected"},
		{"<30>Jul  9 10:00:00 node-a kernel: NVRM: one", day, none},
		{"<4>1 2026-07-09T10:00:00Z node-a python3 77 - - NVRM: one", day, none},
		{"<13>1 2026-07-09T10:00:00Z node-a kernel - - - NVRM: one", day, none},
		{"<4>1 2026-07-09T10:00:00Z node-a kernel - - -", day, ""},
		{`<4>1 2026-07-09T10:00:00Z node-a kernel - - [meta a="b NVRM: one`, time.Time{}, `1 2026-07-09T10:00:00Z node-a kernel - - [meta a="b NVRM: one`},
		{"[Thu Jul  9 10:00:00 2026 <    1.000000>] NVRM: one", day, "NVRM: one"},
		{"[   12.500000 <    1.000000>] NVRM: one", time.Time{}.Add(12500 * time.Millisecond), "NVRM: one"},
		{"[   12.500000 <    1.000000 >] node-a kernel: NVRM: one", time.Time{}.Add(12500 * time.Millisecond), "NVRM: one"},
		{"[<    1.500000>] NVRM: one", time.Time{}.Add(1500 * time.Millisecond), "NVRM: one"},
		{"2026-07-09 10:00:00.500 node-a kernel: NVRM: one", day.Add(time.Second / 2), "NVRM: one"},
		{"2026-07-09 12:00:00+02:00 node-a kernel: [  12.5] NVRM: one", day, "NVRM: one"},
		{"2026-07-09 10:00:00,5 node-a python3[7]: NVRM: one", day, none},
		{"2026-07-09 NVRM: one", time.Time{}, "2026-07-09 NVRM: one"},
		{"[  +1.500000] NVRM: one", time.Time{}.Add(1500 * time.Millisecond), "NVRM: one"},
	} {
		l, err := logtext.NewReader(strings.NewReader(c.line+"\n"), logtext.Options{Now: day}).Next()
		switch {
		case c.text == none && err == nil:
			t.Errorf("%s: %q", c.line, l.Text)
		case c.text != none && (err != nil || string(l.Text) != c.text || !l.At.Equal(c.at)):
			t.Errorf("%s: %q at %v, %v; want %q at %v", c.line, l.Text, l.At, err, c.text, c.at)
		}
	}
}

// A line of JSON that is none of journald's may hold the driver's words; it is not taken for one that says nothing.
func TestJSONOfAnotherProgram(t *testing.T) {
	for in, want := range map[string][2]int{
		`{"log":"NVRM: one\n","stream":"stdout"}`:    {0, 1},
		`{"log":"two\n","stream":"stdout"}`:          {0, 0},
		`{"_TRANSPORT":"kernel","MESSAGE":"two"}`:    {1, 0},
		`{"_TRANSPORT":"kernel","MESSAGE":"NVRM: on`: {0, 1},
	} {
		r := logtext.NewReader(strings.NewReader(in+"\n"), logtext.Options{Want: func(b []byte) bool { return strings.Contains(string(b), "NVRM: ") }})
		if _, err := r.Next(); err == nil || r.Known != want[0] || r.Broken != want[1] {
			t.Errorf("%s: %d known and %d broken, want %v; %v", in, r.Known, r.Broken, want, err)
		}
	}
}
