package policy

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDurationText(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "12h": 12 * time.Hour, "7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour, "1h30m": 90 * time.Minute,
		"500ms": 500 * time.Millisecond, "1.5h": 90 * time.Minute, "0": 0, "0s": 0, "-5s": -5 * time.Second, "-1d1h": -25 * time.Hour,
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.D() != want {
			t.Errorf("%q: got %v, %v, want %v", text, d.D(), err, want)
		}
	}
	for _, text := range []string{"", "-", "30", "d", "5 m", "7d0", "1d2d", "1h1d", "--5s", "1d-1h", "+5s", "x", "9999999d", "106751d24h", "1e3s", "12 h", "NaN"} {
		d := Duration(42)
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as %v", text, d)
		} else if d != 42 {
			t.Errorf("%q: refused, but the value changed to %v", text, d)
		}
	}
}

func TestDurationPrintsShort(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"12h": 12 * time.Hour, "30d": 720 * time.Hour, "30s": 30 * time.Second, "10m": 10 * time.Minute, "1h5m": 65 * time.Minute, "1h0m5s": time.Hour + 5*time.Second,
		"0s": 0, "25h": 25 * time.Hour,
	} {
		if got := Duration(d).String(); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

func TestDurationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Duration(rapid.Int64Min(math.MinInt64+1).Draw(t, "d"))
		if rapid.Bool().Draw(t, "whole days") {
			d -= d % Duration(day)
		}
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back Duration
		if err := json.Unmarshal(b, &back); err != nil || back != d {
			t.Fatalf("%d printed as %s, read back as %d, %v", d, b, back, err)
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"30s", "7d", "1d12h", "-5s", "1h30m", "7d0", "0.1d", "9223372036854775807ns"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d, back Duration
		if d.UnmarshalText([]byte(text)) != nil {
			return
		}
		if err := back.UnmarshalText([]byte(d.String())); err != nil || back != d {
			t.Fatalf("%q read as %d, printed as %s, read back as %d, %v", text, d, d, back, err)
		}
	})
}
