package guard

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks/policy"
)

// TestNeverMoreThanTheBudget takes at random times, nodes, leaves and reasons what the guard gives, and counts for
// itself: in no window, wherever it begins, is more taken than the share of the largest fleet seen within it.
func TestNeverMoreThanTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy.Default().Guard
		p.FleetHourShare = rapid.SampledFrom([]float64{0.02, 0.1, 0.5}).Draw(t, "hour share")
		p.FleetDayShare = rapid.SampledFrom([]float64{0.05, 0.2, 1}).Draw(t, "day share")
		p.FleetHourMax = rapid.SampledFrom([]int{1, 3, 20}).Draw(t, "hour max")
		type taken struct {
			node, leaf, reason string
			at                 time.Time
		}
		var b Books
		var all []taken
		at, size, most := t0, rapid.IntRange(1, 200).Draw(t, "fleet"), 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			at = at.Add(rapid.SampledFrom([]time.Duration{0, time.Second, 20 * time.Minute, time.Hour, 7 * time.Hour}).Draw(t, "later"))
			size = max(0, size+rapid.IntRange(-3, 3).Draw(t, "change"))
			most = max(most, size)
			x := taken{fmt.Sprintf("n%d", rapid.IntRange(0, 40).Draw(t, "node")), rapid.SampledFrom([]string{"s1", "s2", ""}).Draw(t, "leaf"),
				rapid.SampledFrom([]string{"ecc", "xid 79"}).Draw(t, "reason"), at}
			c := Census{Schedulable: size, Leaf: map[string]int{"s1": 16, "s2": 4}}
			if frozen := rapid.IntRange(0, 9).Draw(t, "freeze") == 0; frozen {
				if ok, _ := New(p, c, b.Freeze("alice", "stop", at)).Room(x.node, x.leaf, x.reason, "drain", at); ok {
					t.Fatal("a frozen guard gives room")
				}
				continue
			}
			before := b
			if ok, why := New(p, c, b).Room(x.node, x.leaf, x.reason, "drain", at); !ok {
				if why == "" {
					t.Fatal("refused without a reason")
				}
				continue
			}
			b, _ = b.Spend(p, c, Charge{x.node, x.leaf, x.reason, "drain", at, false})
			if reflect.DeepEqual(before, b) && len(all) == 0 {
				t.Fatal("a charge left no trace")
			}
			all = append(all, x)
		}
		count := func(d time.Duration, end time.Time, which func(taken) bool) int {
			nodes := map[string]bool{}
			for _, x := range all {
				if which(x) && x.at.After(end.Add(-d)) && !x.at.After(end) {
					nodes[x.node] = true
				}
			}
			return len(nodes)
		}
		every := func(taken) bool { return true }
		budget := func(share float64, size int) int { return max(1, int(math.Floor(share*float64(size)+1e-9))) }
		for _, x := range all {
			for _, w := range []struct {
				name  string
				d     time.Duration
				which func(taken) bool
				limit int
			}{
				{"fleet hour", time.Hour, every, min(p.FleetHourMax, budget(p.FleetHourShare, most))},
				{"fleet day", 24 * time.Hour, every, budget(p.FleetDayShare, most)},
				{"leaf s1 hour", time.Hour, func(y taken) bool { return y.leaf == "s1" }, budget(p.LeafHourShare, 16)},
				{"leaf s2 hour", time.Hour, func(y taken) bool { return y.leaf == "s2" }, budget(p.LeafHourShare, 4)},
				{"reason ecc hour", time.Hour, func(y taken) bool { return y.reason == "ecc" }, budget(p.ReasonShare, most)},
			} {
				if n := count(w.d, x.at, w.which); n > max(1, w.limit) {
					t.Fatalf("%s ending %s: %d taken, budget %d", w.name, x.at, n, w.limit)
				}
			}
		}
	})
}

// TestMoreRefusesNoLess: books that hold more never give more room.
func TestMoreRefusesNoLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, c := policy.Default().Guard, Census{Schedulable: rapid.IntRange(1, 300).Draw(t, "fleet"), Leaf: map[string]int{"s1": 16}}
		var b Books
		for i := range rapid.IntRange(0, 10).Draw(t, "before") {
			b, _ = b.Spend(p, c, Charge{fmt.Sprintf("n%d", i), "s1", "ecc", "drain", t0, false})
		}
		more, _ := b.Spend(p, c, Charge{"extra", "s1", "ecc", "drain", t0, false})
		had, _ := New(p, c, b).Room("x", "s1", "ecc", "drain", t0)
		has, _ := New(p, c, more).Room("x", "s1", "ecc", "drain", t0)
		if has && !had {
			t.Fatal("a charge made room")
		}
	})
}
