package worker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/golden"
)

func TestPlan(t *testing.T) {
	suite := golden.Suite{Kernels: []string{"a", "b", "c"}, Hot: []string{"a", "b"}, HotShare: 0.5, Seeds: 1, Rounds: 1}
	two := suite
	two.Seeds, two.Rounds = 2, 2
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"a second each: hot until half the time, then the rest", Options{Suite: suite, Size: golden.Full, Within: 10 * time.Second, Seed: 62}, "a62 b62 a63 b63 a0 b0 c62"},
		{"a simulated GPU has no heat", Options{Suite: suite, Size: golden.Reduced, Within: 10 * time.Second}, "a0 b0 c0"},
		{"no time is given", Options{Suite: suite, Size: golden.Full}, "a0 b0 c0"},
		{"what once caught a device comes first", Options{Suite: suite, Size: golden.Reduced, First: []string{"c", "gone"}}, "c0 a0 b0"},
		{"only some", Options{Suite: suite, Size: golden.Full, Kernels: []string{"c"}, Within: time.Minute}, "c0"},
		{"rounds go on to other seeds", Options{Suite: two, Size: golden.Reduced}, "a0 b0 c0 a1 b1 c1 a2 b2 c2 a3 b3 c3"},
		{"a suite that is to last", Options{Suite: suite, Size: golden.Reduced, For: 4 * time.Second}, "a0 b0 c0 a1 b1 c1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			passed := func() time.Duration { return time.Duration(len(got)) * time.Second }
			tt.o.plan(passed, func(id string, seed int) bool {
				got = append(got, fmt.Sprint(id, seed))
				return true
			})
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
			for stop := range got {
				n := 0
				tt.o.plan(func() time.Duration { return time.Duration(n) * time.Second }, func(string, int) bool { n++; return n <= stop })
				if n != stop+1 {
					t.Errorf("told to stop after %d, it ran %d", stop, n)
				}
			}
		})
	}
}

// Whatever is asked for, every kernel of the suite runs with the first seed.
func TestEveryKernelOfASuiteRuns(t *testing.T) {
	for _, s := range golden.Suites() {
		ran := map[string]bool{}
		Options{Suite: s, Size: golden.Full, Within: time.Second, Seed: 7}.plan(func() time.Duration { return time.Hour }, func(id string, seed int) bool {
			ran[id] = ran[id] || seed == 7
			return true
		})
		for _, id := range s.Kernels {
			if !ran[id] {
				t.Errorf("%s: %s did not run", s.Name, id)
			}
		}
		if slices.Contains(s.Hot, "") || s.HotShare > 0 && len(s.Hot) == 0 {
			t.Errorf("%s: hot kernels %q", s.Name, s.Hot)
		}
	}
}
