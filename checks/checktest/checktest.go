// Package checktest holds what the tests of every check have in common: the three fixtures without which a check is none.
//
// A check that no test has seen fail may be unable to; one that no test has seen pass may fail on every node; and one that
// takes what it could not read for healthy is worse than none. So each check's tests call Three or, where it judges events,
// Events, once for its id. Package catalog looks for the call in the source of the tests: a check without it fails there.
package checktest

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
)

// Three takes what the check made of three readings: one of sound hardware, one of a fault, and one that could not be taken.
func Three(t *testing.T, id string, sound, fault, unread []checks.Finding) {
	t.Helper()
	of(t, id, "sound hardware", sound)
	of(t, id, "a fault", fault)
	of(t, id, "a reading that could not be taken", unread)
	if v := checks.FoldFindings(sound); v != checks.Pass {
		t.Errorf("%s: sound hardware is %s, want pass: %+v", id, v, sound)
	}
	if v := checks.FoldFindings(fault); v != checks.Fail {
		t.Errorf("%s: a fault is %s, want fail: %+v", id, v, fault)
	}
	if v := checks.FoldFindings(unread); v != checks.Unknown {
		t.Errorf("%s: what could not be read is %s, want unknown: %+v", id, v, unread)
	}
}

// Events takes what a check of events made of three of them: one that says nothing against the hardware, a fault, and one
// whose meaning is not known. A quiet log proves nothing, so no event passes; and one that is not understood is watched.
func Events(t *testing.T, id string, harmless, fault, strange []checks.Finding) {
	t.Helper()
	of(t, id, "a harmless event", harmless)
	of(t, id, "a fault", fault)
	of(t, id, "an event that is not understood", strange)
	for _, f := range harmless {
		if f.Verdict != checks.NotApplicable || f.Action > checks.RestartApp {
			t.Errorf("%s: a harmless event is %s, %s: %+v", id, f.Verdict, f.Action, f)
		}
	}
	if v := checks.FoldFindings(fault); v != checks.Fail {
		t.Errorf("%s: a fault is %s, want fail: %+v", id, v, fault)
	}
	for _, f := range strange {
		if f.Verdict == checks.Pass || f.Verdict == checks.Fail || f.Action != checks.Watch {
			t.Errorf("%s: an event that is not understood is %s, %s; want it watched: %+v", id, f.Verdict, f.Action, f)
		}
	}
}

// of wants findings of the check, each with its reason.
func of(t *testing.T, id, what string, fs []checks.Finding) {
	t.Helper()
	if len(fs) == 0 {
		t.Errorf("%s: %s gave no finding", id, what)
	}
	for _, f := range fs {
		if f.Check != id || f.Reason == "" && f.Verdict != checks.Pass {
			t.Errorf("%s: %s gave %+v", id, what, f)
		}
	}
}
