package checktest

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
)

func finding(v checks.Verdict, a checks.Action) []checks.Finding {
	return []checks.Finding{{Check: "x", Verdict: v, Action: a, Reason: "seen"}}
}

// What stands in for a fixture and is none must be told.
func TestFixturesThatAreNone(t *testing.T) {
	pass, fail, unknown := finding(checks.Pass, checks.None), finding(checks.Fail, checks.Drain), finding(checks.Unknown, checks.None)
	harmless, strange := finding(checks.NotApplicable, checks.RestartApp), finding(checks.NotApplicable, checks.Watch)
	for name, c := range map[string]struct {
		want func(*testing.T)
		ok   bool
	}{
		"three as they should be":        {func(t *testing.T) { Three(t, "x", pass, fail, unknown) }, true},
		"sound hardware fails":           {func(t *testing.T) { Three(t, "x", fail, fail, unknown) }, false},
		"a fault passes":                 {func(t *testing.T) { Three(t, "x", pass, pass, unknown) }, false},
		"what was not read passes":       {func(t *testing.T) { Three(t, "x", pass, fail, pass) }, false},
		"no finding at all":              {func(t *testing.T) { Three(t, "x", pass, fail, nil) }, false},
		"another check's":                {func(t *testing.T) { Three(t, "y", pass, fail, unknown) }, false},
		"events as they should be":       {func(t *testing.T) { Events(t, "x", harmless, fail, strange) }, true},
		"a harmless event passes":        {func(t *testing.T) { Events(t, "x", pass, fail, strange) }, false},
		"a strange event is not watched": {func(t *testing.T) { Events(t, "x", harmless, fail, harmless) }, false},
		"a strange event is a fault":     {func(t *testing.T) { Events(t, "x", harmless, fail, fail) }, false},
		"a faulty event is none":         {func(t *testing.T) { Events(t, "x", harmless, harmless, strange) }, false},
	} {
		// Its own T, which the test's verdict does not follow.
		probe := &testing.T{}
		done := make(chan struct{})
		go func() { defer close(done); c.want(probe) }()
		<-done
		if probe.Failed() == c.ok {
			t.Errorf("%s: noticed %t, want %t", name, probe.Failed(), !c.ok)
		}
	}
}
