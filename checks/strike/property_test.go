package strike

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever happens to a counter's raw value, its rise is never less than what was seen to be added while it fell nowhere,
// and never more than what was added in all.
func TestRiseIsWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := time.Duration(rapid.IntRange(1, 100).Draw(t, "span")) * time.Second
		kind := rapid.SampledFrom([]Kind{Counter64, Counter32}).Draw(t, "kind")
		var c Counter
		var d Delta
		raw := rapid.Uint64Range(0, kind.Max()/2).Draw(t, "start")
		type reading struct {
			at    time.Duration
			added uint64
		}
		var all []reading
		at := time.Duration(0)
		total := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "readings") {
			add := rapid.Uint64Range(0, 1000).Draw(t, "add")
			raw += add
			total += add
			all = append(all, reading{at, total})
			c, d = c.Read(at, raw, span, kind)
			at += time.Duration(rapid.IntRange(1, 20).Draw(t, "step")) * time.Second
		}
		last := all[len(all)-1]
		if d.Over > last.at {
			t.Fatalf("a rise over %s, read for %s", d.Over, last.at)
		}
		for _, r := range all {
			if r.at == last.at-d.Over && d.Rise != last.added-r.added {
				t.Fatalf("rise %d over %s, added %d", d.Rise, d.Over, last.added-r.added)
			}
		}
		if d.Full && (d.Over < span || d.Over > 3*span) {
			t.Fatalf("a full window of %s is %s long", span, d.Over)
		}
		if len(c.Marks) > 4*marks {
			t.Fatalf("%d marks are kept", len(c.Marks))
		}
	})
}

// A counter of 32 bits that wraps at most once between two readings counts as one of 64 bits would.
func TestAWrapHidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		true64 := rapid.Uint64Range(1<<32-5000, 1<<32-1).Draw(t, "start")
		var wide, narrow Counter
		for i := range 20 {
			at := time.Duration(i) * time.Second
			var w, n Delta
			wide, w = wide.Read(at, true64, 10*time.Second, Counter64)
			narrow, n = narrow.Read(at, true64&(1<<32-1), 10*time.Second, Counter32)
			if w != n {
				t.Fatalf("64 bits say %+v, 32 bits %+v", w, n)
			}
			true64 += rapid.Uint64Range(0, 1<<20).Draw(t, "add")
		}
	})
}

// One subject's readings change nothing of another's, and a book read back goes on where it was.
func TestSubjectsAreApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		both, alone := NewBook("b"), NewBook("b")
		rule := FlapRule{Window: time.Minute, Count: 2}
		for i := range rapid.IntRange(1, 30).Draw(t, "readings") {
			at := time.Duration(i) * time.Second
			subject := rapid.SampledFrom([]string{"port/a", "port/b"}).Draw(t, "subject")
			up, raw := rapid.Bool().Draw(t, "up"), rapid.Uint64Range(0, 300).Draw(t, "raw")
			for _, b := range []*Book{both, alone} {
				if b == alone && subject != "port/a" {
					continue
				}
				b.Flap(subject, "link", at, up, rule)
				b.Count(subject, "errors", at, raw, 10*time.Second, Saturates8)
				b.Last(subject, "down", at, !up, 0)
				b.Strike(subject, "down", !up, 1)
			}
		}
		if !reflect.DeepEqual(both.Subjects["port/a"], alone.Subjects["port/a"]) {
			t.Fatalf("a neighbour changed it:\n%+v\n%+v", both.Subjects["port/a"], alone.Subjects["port/a"])
		}
		both.Clear("port/b")
		if len(both.Subjects) != len(alone.Subjects) {
			t.Fatal("clearing one subject cleared another, or none")
		}
	})
}

func TestABookIsOfOneBoot(t *testing.T) {
	b := NewBook("boot-1")
	b.Strike("port/a", "link", true, 1)
	b.Strike("port/a", "link", false, 1)
	if !b.Of("boot-1").Strike("port/a", "link", false, 1) {
		t.Error("a strike is forgotten within its boot")
	}
	next := b.Of("boot-2")
	if next.BootID != "boot-2" || next.Strike("port/a", "link", false, 1) {
		t.Error("a strike outlived its boot")
	}
	var none *Book
	if got := none.Of("boot-1"); got.BootID != "boot-1" || got.Subjects == nil {
		t.Errorf("from nothing: %+v", got)
	}
	if got := (&Book{BootID: "boot-1"}).Of("boot-1"); got.Subjects == nil {
		t.Error("a book without subjects cannot be written in")
	}
}

func TestClearAndRetain(t *testing.T) {
	b := NewBook("b")
	for _, s := range []string{"process/1", "process/2", "port/process/1"} {
		b.Last(s, "d", time.Second, true, 0)
	}
	b.Retain("process/", func(s string) bool { return s == "process/2" })
	if len(b.Subjects) != 2 || b.Subjects["process/1"] != nil {
		t.Errorf("left: %v", b.Subjects)
	}
	if !b.Clear("port/process/1") || b.Clear("port/process/1") {
		t.Error("clearing says wrongly whether there was something to clear")
	}
	if d := b.Last("process/2", "d", 5*time.Second, true, 0); d != 4*time.Second {
		t.Errorf("what was kept has lasted %s", d)
	}
}

// A book has bounds: what does not fit is told as it is read, and never fires on a past it has not got.
func TestABookHasBounds(t *testing.T) {
	b := NewBook("b")
	for i := range maxSubjects {
		b.Strike(fmt.Sprint("port/", i), "link", true, 1)
	}
	if b.Strike("port/more", "link", false, 1) || !b.Strike("port/more", "link", true, 1) || b.Strike("port/more", "link", false, 1) {
		t.Error("a subject there is no room for counts as it is read, and no more")
	}
	if d := b.Count("port/more", "errors", time.Hour, 9, time.Second, Counter64); d != (Delta{}) {
		t.Errorf("a counter there is no room for rose: %+v", d)
	}
	if d := b.Last("port/more", "down", time.Hour, true, 0); d != 0 {
		t.Errorf("a state there is no room for has lasted %s", d)
	}
	if d := b.Steady("port/more", "down", time.Hour, true, 1); d != 0 {
		t.Errorf("a steady state there is no room for has lasted %s", d)
	}
	if f := b.Flap("port/more", "link", time.Hour, true, FlapRule{Count: 1}); f.Held || !f.Up {
		t.Errorf("a link there is no room for: %+v", f)
	}
	if len(b.Subjects) != maxSubjects {
		t.Errorf("%d subjects", len(b.Subjects))
	}
	for i := range 2 * maxNames {
		b.Strike("port/0", fmt.Sprint("name", i), true, 1)
	}
	if n := len(b.Subjects["port/0"].Latches); n != maxNames {
		t.Errorf("%d names", n)
	}
}

func TestFlapsAreBounded(t *testing.T) {
	var f Flaps
	for i := range 1000 {
		f = f.See(time.Duration(i)*time.Second, i%2 == 0, FlapRule{Window: time.Hour, Count: 900})
	}
	if len(f.Times) != maxFlaps || f.Held {
		t.Errorf("%d returns kept, held %t", len(f.Times), f.Held)
	}
}

func TestDelta(t *testing.T) {
	full := Delta{Rise: 10, Over: 5 * time.Second, Full: true}
	if full.Exceeds(10) || !full.Exceeds(9) || (Delta{Rise: 10}).Exceeds(0) {
		t.Error("a limit fires at what it allows, or before the window is full, or not above it")
	}
	if full.PerSecond() != 2 || (Delta{Rise: 3}).PerSecond() != 0 {
		t.Error("wrong rate")
	}
}
