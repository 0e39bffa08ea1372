package policy

import (
	"testing"
	"time"
)

func TestALimitForPeople(t *testing.T) {
	for want, l := range map[string]Limit{
		"above 2 in 3h: drain, for good after 1 recovery":   {Max: 2, Within: 3 * Duration(time.Hour), Action: "drain", Strikes: 1},
		"above 0 in 1m: drain, for good after 3 recoveries": {Within: Duration(time.Minute), Action: "drain", Strikes: 3},
		"above 10 in 1d: watch":                             {Max: 10, Within: 24 * Duration(time.Hour), Action: "watch"},
	} {
		if got := l.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
