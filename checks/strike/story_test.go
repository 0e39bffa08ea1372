package strike

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// The stories: each command takes readings, one a line, and says after each what is known. Every value goes through its
// JSON form between readings, as over a restart.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "counter":
				return storyCounter(t, d)
			case "flaps":
				return storyFlaps(t, d)
			case "lasting":
				return storyLasting(t, d)
			case "strikes":
				return storyStrikes(t, d)
			}
			t.Fatalf("%s: no command %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

var kinds = map[string]Kind{"64": Counter64, "32": Counter32, "8": {Bits: 8}, "sat16": Saturates16, "sat8": Saturates8, "sat4": Saturates4, "sat32": Saturates32}

func arg(t *testing.T, d *datadriven.TestData, name string) time.Duration {
	t.Helper()
	var s string
	d.ScanArgs(t, name, &s)
	return duration(t, s)
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	at, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// each calls f for every line of input: its time, and the rest.
func each(t *testing.T, d *datadriven.TestData, f func(at time.Duration, rest string) string) string {
	var out strings.Builder
	for line := range strings.Lines(d.Input) {
		at, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		fmt.Fprintf(&out, "%s %s: %s\n", at, rest, f(duration(t, at), rest))
	}
	return out.String()
}

// restart gives what v is after it was written and read again.
func restart[V any](t *testing.T, v V) V {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back V
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func storyCounter(t *testing.T, d *datadriven.TestData) string {
	var name string
	d.ScanArgs(t, "kind", &name)
	span, kind := arg(t, d, "span"), kinds[name]
	var c Counter
	return each(t, d, func(at time.Duration, rest string) string {
		raw, err := strconv.ParseUint(rest, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		var delta Delta
		c, delta = restart(t, c).Read(at, raw, span, kind)
		s := fmt.Sprintf("+%d in %s", delta.Rise, delta.Over)
		for _, w := range []struct {
			set  bool
			word string
		}{{delta.Full, "full"}, {delta.Reset, "reset"}, {delta.Stuck, "stuck"}} {
			if w.set {
				s += ", " + w.word
			}
		}
		return s
	})
}

func storyFlaps(t *testing.T, d *datadriven.TestData) string {
	r := FlapRule{MinDown: arg(t, d, "min"), Window: arg(t, d, "window")}
	d.ScanArgs(t, "count", &r.Count)
	var f Flaps
	return each(t, d, func(at time.Duration, rest string) string {
		f = restart(t, f).See(at, rest == "up", r)
		s := fmt.Sprintf("%d flaps", len(f.Times))
		if f.Held {
			s += fmt.Sprintf(", held by %d", f.HeldBy)
		}
		return s
	})
}

func storyLasting(t *testing.T, d *datadriven.TestData) string {
	gap := arg(t, d, "gap")
	var l Lasting
	return each(t, d, func(at time.Duration, rest string) string {
		state, beat, steady := strings.Cut(rest, " ")
		if steady {
			n, err := strconv.ParseUint(beat, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			l = restart(t, l).SeeSteady(at, state == "on", n)
		} else {
			l = restart(t, l).See(at, state == "on", gap)
		}
		return fmt.Sprintf("for %s", l.For())
	})
}

func storyStrikes(t *testing.T, d *datadriven.TestData) string {
	var limit int
	d.ScanArgs(t, "limit", &limit)
	var l Latch
	return each(t, d, func(_ time.Duration, rest string) string {
		l = restart(t, l).See(rest == "bad")
		if l.Fails(limit) {
			return fmt.Sprintf("fails, %d strikes", l.Strikes)
		}
		return fmt.Sprintf("well, %d strikes", l.Strikes)
	})
}
