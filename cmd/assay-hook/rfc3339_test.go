package main

import (
	"testing"
	"time"
)

// Package time is the reference: whatever it reads, unixTime reads the same, leap seconds and odd case aside.
func TestUnixTimeAgreesWithPackageTime(t *testing.T) {
	start := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	for day := 0; day < 9999*365; day += 13 {
		at := start.AddDate(0, 0, day).Add(time.Duration(day*7919%86400) * time.Second)
		text := at.In(time.FixedZone("", (day%49-24)*1800)).Format(time.RFC3339)
		if at.Year() > 9990 {
			break
		}
		if got, ok := unixTime(text); !ok || got != at.Unix() {
			t.Fatalf("unixTime(%q) = %d, %v, want %d", text, got, ok, at.Unix())
		}
	}
}

func FuzzUnixTime(f *testing.F) {
	for _, s := range []string{"2026-12-01T06:00:00Z", "2024-02-29T23:59:59+05:45", "2023-02-29T00:00:00Z", "2026-12-01T06:00:00.5-00:00", "0000-01-01T00:00:00Z", "2026-12-01 06:00:00Z", "2026-13-01T06:00:00Z", "", "2026-12-01T06:00:00", "2024-02-29T23:59:59+24:45"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := unixTime(s)
		want, err := time.Parse(time.RFC3339, s)
		// Package time lets some ill-formed times through, such as an hour of one digit, or a zone a day and more away; unixTime
		// need not.
		_, zone := want.Zone()
		if ok && err != nil || !ok && err == nil && want.Format(time.RFC3339) == s && max(zone, -zone) < 24*60*60 {
			t.Fatalf("unixTime(%q) ok = %v, package time says %v", s, ok, err)
		}
		if ok && got != want.Unix() {
			t.Fatalf("unixTime(%q) = %d, want %d", s, got, want.Unix())
		}
	})
}
