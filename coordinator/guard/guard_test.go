package guard

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

var t0 = time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC)

func fleet(n int) Census {
	return Census{Schedulable: n, Leaf: map[string]int{"s1": 16, "s2": 16, "s3": 2}}
}

// take asks for room and charges it, as the coordinator does.
func take(t *testing.T, p policy.Guard, c Census, b Books, node, leaf, reason string, at time.Time) (Books, string) {
	t.Helper()
	ok, why := New(p, c, b).Room(node, leaf, reason, "drain", at)
	if !ok {
		return b, why
	}
	b, alerts := b.Spend(p, c, Charge{Node: node, Leaf: leaf, Reason: reason, Step: "drain", At: at})
	if len(alerts) > 0 {
		t.Fatalf("a charge within budget alerts: %v", alerts)
	}
	return b, ""
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		share float64
		most  int
		size  int
		want  int
	}{
		{"eight nodes: always one", 0.02, 20, 8, 1},
		{"none schedulable: still one", 0.02, 20, 0, 1},
		{"just under two", 0.02, 20, 99, 1},
		{"two", 0.02, 20, 100, 2},
		{"binary fractions do not cost a node", 0.02, 20, 150, 3},
		{"the absolute bound", 0.02, 20, 10_000, 20},
		{"no absolute bound", 0.05, 0, 10_000, 500},
		{"a leaf of sixteen", 0.25, 0, 16, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Limit(c.share, c.most, c.size); got != c.want {
				t.Errorf("Limit(%v, %d, %d) = %d, want %d", c.share, c.most, c.size, got, c.want)
			}
		})
	}
}

func TestEachScopeRefuses(t *testing.T) {
	p := policy.Default().Guard
	for _, c := range []struct {
		name   string
		fleet  int
		taken  int
		leaf   func(i int) string
		reason func(i int) string
		step   time.Duration
		want   string
	}{
		{"fleet by the hour", 100, 2, nil, nil, 0, "fleet hour: 2 of 2 used"},
		{"fleet by the day", 100, 5, nil, nil, 61 * time.Minute, "fleet day: 5 of 5 used"},
		{"the absolute bound of an hour", 10_000, 20, nil, nil, 0, "fleet hour: 20 of 20 used"},
		{"a leaf", 1000, 4, func(int) string { return "s1" }, nil, 0, "leaf s1 hour: 4 of 4 used"},
		{"a small leaf", 1000, 1, func(int) string { return "s3" }, nil, 0, "leaf s3 hour: 1 of 1 used"},
		{"a fleet of eight", 8, 1, nil, func(int) string { return "ecc" }, 0, "fleet hour: 1 of 1 used"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Books
			at := t0
			name := func(f func(int) string, i int, otherwise string) string {
				if f == nil {
					return fmt.Sprintf("%s%d", otherwise, i)
				}
				return f(i)
			}
			for i := range c.taken {
				var why string
				if b, why = take(t, p, fleet(c.fleet), b, fmt.Sprintf("n%d", i), name(c.leaf, i, "l"), name(c.reason, i, "r"), at); why != "" {
					t.Fatalf("node %d refused: %s", i, why)
				}
				at = at.Add(c.step)
			}
			_, why := take(t, p, fleet(c.fleet), b, "one-more", name(c.leaf, 99, "l"), name(c.reason, 99, "r"), at)
			if why != c.want {
				t.Errorf("got %q, want %q", why, c.want)
			}
			// A node that was taken takes nothing more.
			if ok, why := New(p, fleet(c.fleet), b).Room("n0", name(c.leaf, 0, "l"), name(c.reason, 0, "r"), "kill", at); !ok {
				t.Errorf("a node taken already is refused: %s", why)
			}
		})
	}
}

func TestReasonShare(t *testing.T) {
	p := policy.Default().Guard
	p.FleetHourShare, p.FleetHourMax, p.FleetDayShare = 1, 0, 1
	var b Books
	var why string
	for i := range 25 {
		if b, why = take(t, p, fleet(100), b, fmt.Sprintf("n%d", i), "", "ecc", t0); why != "" {
			t.Fatalf("node %d: %s", i, why)
		}
	}
	if _, why = take(t, p, fleet(100), b, "n25", "", "ecc", t0); why != "reason ecc hour: 25 of 25 used" {
		t.Errorf("got %q", why)
	}
	if _, why = take(t, p, fleet(100), b, "n25", "", "rowremap", t0); why != "" {
		t.Errorf("another reason is refused: %s", why)
	}
}

// TestWindowStart: what was taken shrinks the fleet, but not the budget of the window in which it was taken.
func TestWindowStart(t *testing.T) {
	p := policy.Default().Guard
	p.FleetDayShare = 1
	b, why := take(t, p, fleet(100), Books{}, "n1", "", "a", t0)
	if why != "" {
		t.Fatal(why)
	}
	if b, why = take(t, p, fleet(99), b, "n2", "", "b", t0.Add(time.Minute)); why != "" {
		t.Errorf("the second of two in a hundred: %s", why)
	}
	if _, why = take(t, p, fleet(98), b, "n3", "", "c", t0.Add(time.Hour-time.Nanosecond)); why == "" {
		t.Error("a third within the hour")
	}
	// The first has left the window: one of the 1 that 2 % of 99 allows is used.
	if _, why = take(t, p, fleet(98), b, "n3", "", "c", t0.Add(time.Hour)); why != "fleet hour: 1 of 1 used" {
		t.Errorf("got %q", why)
	}
	if _, why = take(t, p, fleet(98), b, "n3", "", "c", t0.Add(time.Hour+time.Minute)); why != "" {
		t.Errorf("both have left the window: %s", why)
	}
}

func TestFreeze(t *testing.T) {
	p := policy.Default().Guard
	b := Books{}.Freeze("alice", "bad driver", t0)
	if ok, why := New(p, fleet(1000), b).Room("n1", "s1", "ecc", "drain", t0); ok || why != "guard frozen by alice since 2026-11-29T20:00:00Z: bad driver" {
		t.Errorf("frozen: %v %q", ok, why)
	}
	if again := b.Freeze("bob", "me too", t0.Add(time.Hour)); again.Freezer.By != "alice" {
		t.Errorf("the first freeze is not kept: %+v", again.Freezer)
	}
	if ok, why := New(p, fleet(1000), b.Thaw()).Room("n1", "s1", "ecc", "drain", t0); !ok {
		t.Errorf("thawed and refused: %s", why)
	}
	if b.Freezer == nil {
		t.Error("Thaw changed the books it was given")
	}
}

func TestStorm(t *testing.T) {
	p := policy.Default().Guard
	type sight struct {
		node, chassis string
		after         time.Duration
	}
	many := func(n int, chassis string) []sight {
		var s []sight
		for i := range n {
			s = append(s, sight{fmt.Sprintf("n%d", i), chassis, 0})
		}
		return s
	}
	for _, c := range []struct {
		name    string
		exposed int
		seen    []sight
		want    bool
	}{
		{"two nodes are hardware", 8, []sight{{"n1", "", 0}, {"n2", "", 0}}, false},
		{"three nodes of a small fleet", 8, []sight{{"n1", "", 0}, {"n2", "", 0}, {"n3", "", 0}}, true},
		{"one node three times", 8, []sight{{"n1", "", 0}, {"n1", "", 0}, {"n1", "", 0}}, false},
		{"three nodes of one chassis", 8, many(3, "c1"), false},
		{"three nodes, one a slow hour before", 8, []sight{{"n1", "", 0}, {"n2", "", time.Hour}, {"n3", "", 0}}, false},
		{"three of 150 that could show it is 2 %, not more", 150, many(3, ""), false},
		{"three of 149", 149, many(3, ""), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Books
			census, at, called := Census{Schedulable: 10_000, Exposed: map[string]int{"ecc": c.exposed}}, t0, 0
			for _, s := range c.seen {
				at = at.Add(s.after)
				var alerts []Alert
				b, alerts = b.Note(p, census, s.node, s.chassis, "ecc", at)
				called += len(alerts)
			}
			if got := called == 1; got != c.want || called > 1 {
				t.Fatalf("called %d times, want a storm: %v", called, c.want)
			}
			ok, why := New(p, census, b).Room("n9", "", "ecc", "drain", at)
			if ok == c.want {
				t.Errorf("room %v: %s", ok, why)
			}
			if ok, why := New(p, census, b).Room("n9", "", "rowremap", "drain", at); !ok {
				t.Errorf("another reason is stopped: %s", why)
			}
		})
	}
}

func TestStormStands(t *testing.T) {
	p := policy.Default().Guard
	c := Census{Schedulable: 100}
	var b Books
	var alerts []Alert
	for i := range 10 {
		var a []Alert
		b, a = b.Note(p, c, fmt.Sprintf("n%d", i), "", "ecc", t0.Add(time.Duration(i)*time.Minute))
		alerts = append(alerts, a...)
	}
	if len(alerts) != 1 || alerts[0].Reason != "storm" || !strings.Contains(alerts[0].Text, "ecc on 3 nodes of 3 chassis") {
		t.Fatalf("alerts %+v", alerts)
	}
	room := func(b Books, at time.Time) bool {
		ok, _ := New(p, c, b).Room("n99", "", "ecc", "drain", at)
		return ok
	}
	called := t0.Add(2 * time.Minute)
	if room(b, called.Add(time.Hour-time.Nanosecond)) {
		t.Error("over before its window")
	}
	if !room(b, called.Add(time.Hour)) {
		t.Error("stands after its window")
	}
	thawed := b.Thaw()
	if !room(thawed, t0.Add(10*time.Minute)) {
		t.Error("stands after a thaw")
	}
	if _, a := thawed.Note(p, c, "n11", "", "ecc", t0.Add(11*time.Minute)); len(a) > 0 {
		t.Errorf("one sighting after a thaw calls it again: %v", a)
	}
}

func TestHardFaultsPage(t *testing.T) {
	p := policy.Default().Guard
	hard := func(b Books, i int, at time.Time) (Books, []Alert) {
		return b.Spend(p, fleet(300), Charge{Node: fmt.Sprintf("n%d", i), Reason: "xid 79", Step: "revoke", At: at, Hard: true})
	}
	var b Books
	var alerts []Alert
	for i := range 3 {
		if b, alerts = hard(b, i, t0); len(alerts) > 0 {
			t.Fatalf("%d of 300 is not above 1 %%: %v", i+1, alerts)
		}
	}
	if b, alerts = hard(b, 2, t0); len(alerts) > 0 {
		t.Fatal("the same revocation twice counts once")
	}
	if b, alerts = hard(b, 3, t0); len(alerts) != 1 || alerts[0].Text != "hard faults on 4 of 300 nodes within an hour, last xid 79 on n3" {
		t.Fatalf("the fourth: %v", alerts)
	}
	if b, alerts = hard(b, 4, t0.Add(time.Minute)); len(alerts) > 0 {
		t.Error("pages twice within the hour")
	}
	v := New(p, fleet(300), b)
	if got := v.Show(t0.Add(time.Minute)).HardHour; got != 5 {
		t.Errorf("%d in the hour, want 5", got)
	}
	// Counted, and taking no room from anyone.
	if ok, why := v.Room("n100", "", "ecc", "drain", t0); !ok {
		t.Errorf("hard faults use up the budget: %s", why)
	}
	// One hard fault in a small fleet is a case, not a page.
	if _, alerts = (Books{}).Spend(p, fleet(8), Charge{Node: "n1", At: t0, Hard: true}); len(alerts) > 0 {
		t.Errorf("one node pages: %v", alerts)
	}
}

func TestPageOnceAnHour(t *testing.T) {
	b, first := Books{}.Page("withheld ecc", t0)
	if !first {
		t.Fatal("the first is none")
	}
	if _, again := b.Page("withheld ecc", t0.Add(59*time.Minute)); again {
		t.Error("twice within the hour")
	}
	if _, other := b.Page("withheld xid 79", t0); !other {
		t.Error("another key is kept back")
	}
	if b, again := b.Page("withheld ecc", t0.Add(time.Hour)); !again || len(b.Pages) != 1 {
		t.Errorf("an hour later: %v, %d kept", again, len(b.Pages))
	}
}

func TestShow(t *testing.T) {
	p := policy.Default().Guard
	c := fleet(100)
	b, _ := Books{}.Spend(p, c, Charge{Node: "n1", Leaf: "s1", Reason: "ecc", Step: "suspend", At: t0})
	b, _ = b.Spend(p, c, Charge{Node: "n1", Leaf: "s1", Reason: "ecc", Step: "drain", At: t0})
	got := New(p, c, b).Show(t0.Add(time.Minute))
	want := []Budget{
		{"fleet hour", 1, 2, t0.Add(time.Hour)}, {"fleet day", 1, 5, t0.Add(24 * time.Hour)},
		{"leaf s1 hour", 1, 4, t0.Add(time.Hour)}, {"reason ecc hour", 1, 25, t0.Add(time.Hour)},
	}
	if !reflect.DeepEqual(got.Budgets, want) || got.Schedulable != 100 {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := New(p, c, Books{}).Show(t0).Budgets; len(got) != 2 || !got[0].Until.IsZero() || got[0].Limit != 2 {
		t.Errorf("empty books: %+v", got)
	}
}

func TestNext(t *testing.T) {
	in := []HeldBack{
		{"d", false, checks.RMA, t0}, {"c", true, checks.ResetGPU, t0}, {"e", false, checks.ResetGPU, t0.Add(time.Minute)},
		{"b", true, checks.Reboot, t0.Add(time.Minute)}, {"a", true, checks.Reboot, t0.Add(time.Minute)}, {"f", false, checks.ResetGPU, t0},
	}
	keep := slices.Clone(in)
	var order []string
	for _, h := range Next(in) {
		order = append(order, h.Node)
	}
	if got := strings.Join(order, " "); got != "a b c d f e" {
		t.Errorf("order %s", got)
	}
	if !reflect.DeepEqual(in, keep) {
		t.Error("Next changed its argument")
	}
}

func TestBooksSurviveJSON(t *testing.T) {
	p := policy.Default().Guard
	b, _ := Books{}.Spend(p, fleet(10), Charge{Node: "n1", Leaf: "s1", Reason: "ecc", Step: "drain", At: t0})
	b, _ = b.Spend(p, fleet(10), Charge{Node: "n2", Reason: "xid 79", Step: "revoke", At: t0, Hard: true})
	for _, n := range []string{"n1", "n2", "n3"} {
		b, _ = b.Note(p, fleet(10), n, "", "ecc", t0)
	}
	b, _ = b.Page("k", t0)
	b = b.Freeze("alice", "why", t0)
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var back Books
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, b) {
		t.Errorf("got %+v\nwant %+v", back, b)
	}
	if reflect.DeepEqual(back, Books{}) || len(b.Storms) != 1 {
		t.Error("the books of this test are empty")
	}
}

func TestPruneForgets(t *testing.T) {
	p := policy.Default().Guard
	b, _ := Books{}.Spend(p, fleet(10), Charge{Node: "n1", Reason: "ecc", Step: "drain", At: t0})
	b, _ = b.Spend(p, fleet(10), Charge{Node: "n2", Reason: "xid", Step: "revoke", At: t0, Hard: true})
	b, _ = b.Note(p, fleet(10), "n1", "", "ecc", t0)
	hourLater := b.Prune(t0.Add(time.Hour), time.Hour)
	if len(hourLater.Spent) != 1 || len(hourLater.Hard) != 0 || len(hourLater.Seen) != 0 {
		t.Errorf("after an hour: %+v", hourLater)
	}
	if dayLater := b.Prune(t0.Add(24*time.Hour), time.Hour); len(dayLater.Spent) != 0 {
		t.Errorf("after a day: %+v", dayLater)
	}
}
