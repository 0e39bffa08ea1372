package timesync

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/strike"
)

func limits(require bool) policy.TimeSync {
	return policy.TimeSync{Require: require, MaxError: policy.Duration(2 * time.Second), After: policy.Duration(10 * time.Minute)}
}

func synced(off time.Duration) Reading {
	return Reading{Have: checks.Read, Synced: true, MaxError: off}
}

func unsynced(d time.Duration) Reading { return Reading{Have: checks.Read, UnsyncedFor: d} }

func TestJudge(t *testing.T) {
	const m, s = time.Minute, time.Second
	for _, tt := range []struct {
		name    string
		reading Reading
		require bool
		want    string // verdict action
		reason  string
	}{
		{"followed closely", synced(1500 * time.Microsecond), true, "pass none", "the clock is within 1.5ms"},
		{"as far off as it may be", synced(2 * s), true, "pass none", "within 2s"},
		{"further off", synced(3 * s), true, "fail fix_config", "the clock may be off by 3s, more than 2s"},
		{"further off, and nobody minds", synced(3 * s), false, "pass watch", "off by 3s"},
		{"followed nothing for a moment", unsynced(10*m - s), true, "pass none", "followed nothing for 9m59s; of concern after 10m"},
		{"followed nothing for long", unsynced(10 * m), true, "fail fix_config", "the clock has followed nothing for 10m0s"},
		{"followed nothing for long, and nobody minds", unsynced(10 * m), false, "pass watch", "followed nothing"},
		{"not to be asked", Reading{Have: checks.NotSupported}, true, "not_applicable none", "may not be asked"},
		{"never read", Reading{Synced: true}, true, "unknown none", "wall clock not read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(tt.reading, limits(tt.require))
			if got := f.Verdict.String() + " " + f.Action.String(); got != tt.want || !strings.Contains(f.Reason, tt.reason) || f.Hard || f.Check != ID {
				t.Errorf("got %s, hard %t, %q; want %s, %q", got, f.Hard, f.Reason, tt.want, tt.reason)
			}
		})
	}
}

func TestTrack(t *testing.T) {
	book := strike.NewBook("b")
	look := func(at time.Duration, ok bool) time.Duration {
		return Track(book, at, Reading{Have: checks.Read, Synced: ok}).UnsyncedFor
	}
	look(0, false)
	if d := look(time.Hour, false); d != time.Hour {
		t.Errorf("followed nothing for %s", d)
	}
	look(2*time.Hour, true)
	if d := look(3*time.Hour, false); d != 0 {
		t.Errorf("begins anew after it followed something: %s", d)
	}
	if r := Track(book, 4*time.Hour, Reading{}); r.UnsyncedFor != 0 {
		t.Errorf("a reading that failed: %+v", r)
	}
}

func TestFixtures(t *testing.T) {
	judge := func(r Reading) []checks.Finding { return []checks.Finding{Judge(r, limits(true))} }
	checktest.Three(t, ID, judge(synced(0)), judge(unsynced(time.Hour)), judge(Reading{Err: "EPERM"}))
}
