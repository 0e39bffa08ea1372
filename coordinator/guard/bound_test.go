package guard

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks/policy"
)

// TestBooksOfAMassFault: a whole fleet shows five reasons and loses its certificates within an hour. The books stay far
// below what the store takes, and say what they said of a small one.
func TestBooksOfAMassFault(t *testing.T) {
	fleet := 100_000
	if testing.Short() {
		fleet = 10_000
	}
	p, c := policy.Default().Guard, Census{Schedulable: fleet, Leaf: map[string]int{"leaf12": 32}}
	reasons := []string{"xid 79", "xid 48", "ecc", "rowremap", "inventory"}
	var b Books
	pages, storms, paged := 0, map[string]int{}, 0
	for i := range fleet {
		at := t0.Add(time.Duration(i) * 59 * time.Minute / time.Duration(fleet))
		node := fmt.Sprintf("gpu%06d", i)
		for _, reason := range reasons {
			for range 2 { // told again
				var alerts []Alert
				b, alerts = b.Note(p, c, node, "S-"+node, reason, at)
				for range alerts {
					storms[reason] = i + 1
				}
			}
			var alerts []Alert
			b, alerts = b.Spend(p, c, Charge{Node: node, Leaf: "leaf12", Reason: reason, Step: "revoke", At: at, Hard: true})
			if len(alerts) > 0 {
				pages, paged = pages+len(alerts), i+1
			}
		}
	}
	data, err := json.Marshal(b)
	if err != nil || len(data) > 256<<10 {
		t.Errorf("the books take %d bytes, %v", len(data), err)
	}
	end := t0.Add(59 * time.Minute)
	if got := New(p, c, b).Show(end).HardHour; math.Abs(float64(got-fleet)) > 0.02*float64(fleet) {
		t.Errorf("%d nodes with a hard fault in the hour, want %d", got, fleet)
	}
	if want := fleet/100 + 1; pages != 1 || paged != want {
		t.Errorf("%d pages, the last at node %d; want one at %d", pages, paged, want)
	}
	for _, reason := range reasons {
		if want, got := fleet/50+1, storms[reason]; math.Abs(float64(got-want)) > 0.03*float64(want) {
			t.Errorf("storm of %s called at node %d, want %d", reason, got, want)
		}
		if ok, _ := New(p, c, b).Room("other", "", reason, "drain", t0.Add(30*time.Minute)); ok {
			t.Errorf("room for %s in its storm", reason)
		}
	}
	if len(b.Storms) != len(reasons) {
		t.Errorf("%d storms", len(b.Storms))
	}
	if rest := b.Prune(end.Add(time.Hour), time.Hour); len(rest.Hard) != 0 || rest.Seen != nil || rest.Rest != (Rest{}) {
		t.Errorf("kept after its window: %d hard, %d reasons", len(rest.Hard), len(rest.Seen))
	}
	var back Books
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, b) {
		t.Errorf("not the same after JSON: %v", err)
	}
}

// TestBooksAreBoundedWhateverComes: nodes out of their mind, with names and reasons of any number.
func TestBooksAreBoundedWhateverComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, c := policy.Default().Guard, Census{Schedulable: rapid.IntRange(1, 1_000_000).Draw(t, "fleet")}
		var b Books
		at := t0
		for range rapid.IntRange(1, 30).Draw(t, "bursts") {
			at = at.Add(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 20 * time.Minute}).Draw(t, "later"))
			first, nodes, reasons := rapid.IntRange(0, 500).Draw(t, "first"), rapid.IntRange(1, 20).Draw(t, "nodes"), rapid.IntRange(1, 80).Draw(t, "reasons")
			before, had := b, mustJSON(t, b)
			for i := range nodes {
				for r := range reasons {
					b, _ = b.Note(p, c, fmt.Sprintf("gpu%d", first+i), "", fmt.Sprintf("xid %d", r*first), at)
				}
				b, _ = b.Spend(p, c, Charge{Node: fmt.Sprintf("gpu%d", first+i), Reason: "xid", Step: "refuse", At: at})
			}
			if string(had) != string(mustJSON(t, before)) {
				t.Fatal("the books given were changed")
			}
		}
		shown := map[string]int{}
		for _, seen := range b.Seen {
			for _, m := range seen {
				for _, n := range m.Nodes {
					shown[n]++
				}
			}
		}
		for n, k := range shown {
			if k > nodeReasons {
				t.Fatalf("%s is kept for %d reasons", n, k)
			}
		}
		if len(b.Seen) > seenReasons || len(b.Spent) > spentKept {
			t.Fatalf("%d reasons, %d charges", len(b.Seen), len(b.Spent))
		}
		if n := len(mustJSON(t, b)); n > 1<<20 {
			t.Fatalf("the books take %d bytes", n)
		}
	})
}

func mustJSON(t *rapid.T, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestNewReasonsAreSeenWhenAllPlacesAreTaken: the least seen reason gives way, a storm does not.
func TestNewReasonsAreSeenWhenAllPlacesAreTaken(t *testing.T) {
	p, c := policy.Default().Guard, Census{Schedulable: 100}
	var b Books
	for i := range 3 {
		b, _ = b.Note(p, c, fmt.Sprintf("n%d", i), "", "ecc", t0)
	}
	for i := range seenReasons + 10 {
		b, _ = b.Note(p, c, fmt.Sprintf("m%d", i), "", fmt.Sprintf("xid %d", i), t0)
	}
	called := 0
	for i := range 3 {
		var alerts []Alert
		b, alerts = b.Note(p, c, fmt.Sprintf("k%d", i), "", "golden", t0)
		called += len(alerts)
	}
	if _, kept := b.Seen["ecc"]; !kept || called != 1 || len(b.Seen) != seenReasons {
		t.Errorf("storm called %d times, %d reasons, ecc kept: %v", called, len(b.Seen), kept)
	}
}

// TestBooksOfBeforeAreRead: each hard charge and each sighting by itself.
func TestBooksOfBeforeAreRead(t *testing.T) {
	var b Books
	err := json.Unmarshal([]byte(`{"spent":[{"node":"n1","reason":"ecc","step":"drain","at":"2026-11-29T20:00:00Z","schedulable":100}],
		"hard":[{"node":"n1","reason":"xid 79","step":"revoke","at":"2026-11-29T20:00:00Z","schedulable":100},
			{"node":"n2","reason":"xid 79","step":"revoke","at":"2026-11-29T20:05:00Z","schedulable":99},
			{"node":"n1","reason":"xid 48","step":"revoke","at":"2026-11-29T20:06:00Z","schedulable":98}],
		"seen":[{"node":"n1","chassis":"c1","reason":"ecc","at":"2026-11-29T20:00:00Z"},{"node":"n2","chassis":"c2","reason":"ecc","at":"2026-11-29T20:00:01Z"}],
		"storms":[{"reason":"xid 79","at":"2026-11-29T20:00:00Z","until":"2026-11-29T21:00:00Z","nodes":["n1","n2","n3"]}]}`), &b)
	if err != nil {
		t.Fatal(err)
	}
	p, c := policy.Default().Guard, Census{Schedulable: 100}
	if got := New(p, c, b).Show(t0.Add(10 * time.Minute)); got.HardHour != 2 || len(got.Storms) != 1 || got.Storms[0].Size() != 3 || len(b.Spent) != 1 {
		t.Errorf("shown %+v", got)
	}
	b, alerts := b.Note(p, c, "n3", "c3", "ecc", t0.Add(10*time.Minute))
	if len(alerts) != 1 || !strings.Contains(alerts[0].Text, "ecc on 3 nodes of 3 chassis") {
		t.Errorf("the third sighting: %v", alerts)
	}
	if _, alerts = b.Spend(p, c, Charge{Node: "n9", Reason: "xid 79", At: t0.Add(time.Hour), Hard: true}); len(alerts) != 1 {
		t.Errorf("three hard faults of a hundred: %v", alerts)
	}
}
