package main

import (
	"strings"
	"testing"
)

func TestALogIsScored(t *testing.T) {
	// Two leaves of two nodes. The second job could have had the second leaf alone when it started, and lay across both.
	jobs, err := read(strings.NewReader("0 0 10 10 8 n001\n0 5 15 10 8 n[002-003]\n10 10 20 10 4 n004\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := "jobs 3, gangs 1, mean wait 1.7 s, p95 wait 0 s, bounded slowdown 1.17, utilisation 50.0 %, leaves 2: 2.000 over fewest on an empty fleet, 2.000 over fewest then free"
	if got := score(jobs, 4, 8, 2); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	// With the fourth node busy as well nothing better was free.
	jobs, err = read(strings.NewReader("0 0 10 10 8 n001\n0 5 15 10 8 n[002-003]\n0 0 20 10 4 n004\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := score(jobs, 4, 8, 2); !strings.HasSuffix(got, "2.000 over fewest on an empty fleet, 1.000 over fewest then free") {
		t.Error(got)
	}
	for _, bad := range []string{"", "1 2 3\n", "0 0 1 1 8 node\n", "0 0 1 1 8 n[1\n"} {
		if _, err := read(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
