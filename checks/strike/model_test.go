package strike

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A look is one reading of whether a subject is well.
type look struct {
	at   time.Duration
	well bool
}

func looks(t *rapid.T) (out []look) {
	at := time.Duration(0)
	for range rapid.IntRange(1, 60).Draw(t, "looks") {
		at += time.Duration(rapid.IntRange(0, 20).Draw(t, "step")) * time.Second
		out = append(out, look{at, rapid.Bool().Draw(t, "well")})
	}
	return out
}

// A fault counts while it is there, and for good once it has gone away by itself as often as is believed: what a plain count
// over all looks says. It is never forgotten by looking on, only by another boot or a person.
func TestStrikesHoldUntilTheNextBoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, limit := NewBook("b"), rapid.IntRange(0, 4).Draw(t, "limit")
		gone, bad, held := 0, false, false
		for i, l := range looks(t) {
			if bad && l.well {
				gone++
			}
			bad = !l.well
			want := bad || limit > 0 && gone >= limit
			if got := book.Strike("port/a", "link", bad, limit); got != want {
				t.Fatalf("look %d: fails %t after %d recoveries of %d, want %t", i, got, gone, limit, want)
			}
			if held && !want {
				t.Fatalf("look %d: what was held is believed again", i)
			}
			held = limit > 0 && gone >= limit
		}
	})
}

// A flap is a return after at least the least time down, of a link that was up before; those of the window count, all of them
// and no other, and as many as are too many hold for good.
func TestFlapsAreThoseOfTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := FlapRule{MinDown: time.Duration(rapid.IntRange(0, 30).Draw(t, "least")) * time.Second,
			Window: time.Duration(rapid.IntRange(1, 200).Draw(t, "window")) * time.Second, Count: rapid.IntRange(0, 4).Draw(t, "count")}
		book, all := NewBook("b"), looks(t)
		held := false
		for i, now := range all {
			f := book.Flap("port/a", "link", now.at, now.well, rule)
			n := 0
			for j := 1; j <= i; j++ { // every return there has been
				if !all[j].well || all[j-1].well {
					continue
				}
				down := j - 1
				for down > 0 && !all[down-1].well {
					down--
				}
				if down > 0 && all[j].at-all[down].at >= rule.MinDown && now.at-all[j].at <= rule.Window {
					n++
				}
			}
			held = held || rule.Count > 0 && n >= rule.Count
			if len(f.Times) != n || f.Held != held || held != (f.HeldBy > 0) {
				t.Fatalf("look %d at %s: %+v, want %d flaps, held %t by %+v", i, now.at, f, n, held, rule)
			}
		}
	})
}

// A state has lasted since the first look of those without a break that show it, up to the last. One look that does not, or a
// gap too long to say, begins it anew.
func TestAStateLastsWhileEveryLookShowsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, all := NewBook("b"), looks(t)
		gap := time.Duration(rapid.IntRange(0, 15).Draw(t, "gap")) * time.Second
		for i, now := range all {
			first := i
			for !now.well && first > 0 && !all[first-1].well && (gap == 0 || all[first].at-all[first-1].at <= gap) {
				first--
			}
			if got, want := book.Last("process/1", "asleep", now.at, !now.well, gap), now.at-all[first].at; got != want {
				t.Fatalf("look %d: has lasted %s, want %s", i, got, want)
			}
		}
	})
}
