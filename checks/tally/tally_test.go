package tally

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
)

func TestFinding(t *testing.T) {
	for _, tt := range []struct {
		name string
		note func(*Tally)
		want string
	}{
		{"nothing", func(*Tally) {}, "pass none well"},
		{"something to watch", func(t *Tally) { t.Watch("w%d", 1) }, "pass watch w1"},
		{"a doubt", func(t *Tally) { t.Doubt("d") }, "unknown none d"},
		{"a doubt and something to watch", func(t *Tally) { t.Watch("w"); t.Doubt("d") }, "unknown watch d; w"},
		{"a fault among all", func(t *Tally) { t.Watch("w"); t.Doubt("d"); t.Fault(checks.Drain, "f") }, "fail drain f; d; w"},
		{"the severest of two faults decides", func(t *Tally) { t.Fault(checks.Drain, "a"); t.Fault(checks.Reboot, "b") }, "fail drain a; b"},
		{"whichever comes first", func(t *Tally) { t.Fault(checks.Reboot, "a"); t.Fault(checks.Drain, "b") }, "fail drain a; b"},
	} {
		x := New("c")
		tt.note(x)
		f := x.Finding("e", "well")
		if got := f.Verdict.String() + " " + f.Action.String() + " " + f.Reason; got != tt.want || f.Check != "c" || f.Evidence != "e" || f.Subject.Kind != checks.KindNode {
			t.Errorf("%s: got %s, %+v; want %s", tt.name, got, f, tt.want)
		}
	}
}

func TestUnread(t *testing.T) {
	if f := Unread("c", "things", ""); f.Verdict != checks.Unknown || f.Reason != "things not read" || f.Check != "c" {
		t.Errorf("%+v", f)
	}
	if f := Unread("c", "things", "EIO"); f.Reason != "things not read: EIO" {
		t.Errorf("%+v", f)
	}
}

func TestBytes(t *testing.T) {
	for want, n := range map[string]uint64{"2.15 TB": 2_147_483_648_000, "1.00 TB": 1e12, "999.9 GB": 999.9e9, "1.0 GB": 1e9, "0.0 MB": 0} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
