package counter

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks"
)

func TestRise(t *testing.T) {
	for _, tt := range []struct {
		name      string
		r         Reading
		by        uint64
		why       string
		saturated bool
	}{
		{"never asked", Reading{}, 0, "not read", false},
		{"never asked, whatever it shows", Reading{Now: 255}, 0, "not read", false},
		{"a GPU without it", Reading{Have: checks.NotSupported}, 0, "not counted by this GPU", false},
		{"the first reading", Of(7), 0, "no earlier reading", false},
		{"no change", Of(7).After(Of(7)), 0, "", false},
		{"a rise", Of(12).After(Of(7)), 5, "", false},
		{"a rise from nothing", Of(5).After(Of(0)), 5, "", false},
		{"reset between", Of(3).After(Of(7)), 0, "fell from 7 to 3: it was reset", false},
		{"an earlier reading that failed", Of(3).After(Reading{}), 0, "no earlier reading", false},
		{"the end of 8 bits", Of(255), 0, "saturated at 255: it counts no further", true},
		{"the end of 16 bits", Of(65535).After(Of(65535)), 0, "saturated at 65535: it counts no further", true},
		{"the end of 32 bits", Of(4294967295), 0, "saturated at 4294967295: it counts no further", true},
		{"the end of 64 bits", Of(1<<64 - 1), 0, "saturated at 18446744073709551615: it counts no further", true},
		{"one below the end", Of(254).After(Of(254)), 0, "", false},
		{"one above the end of 8 bits", Of(256).After(Of(255)), 1, "", false},
		{"it came to stand there just now", Of(255).After(Of(250)), 5, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			by, why := tt.r.Rise()
			if by != tt.by || why != tt.why || tt.r.Saturated() != tt.saturated {
				t.Errorf("got %d, %q, saturated %t; want %d, %q, %t", by, why, tt.r.Saturated(), tt.by, tt.why, tt.saturated)
			}
		})
	}
}

func TestRate(t *testing.T) {
	if got := Rate(30, 90*time.Second, time.Minute); got != 20 {
		t.Errorf("30 in 90 s are %v a minute, want 20", got)
	}
	if got := Rate(30, 0, time.Minute); got != 0 {
		t.Errorf("over no time: %v", got)
	}
	if got := Share(uint64(15*time.Second), time.Minute); got != 0.25 {
		t.Errorf("15 s of a minute: %v", got)
	}
	if got := Share(uint64(2*time.Minute), time.Minute); got != 1 {
		t.Errorf("more than the time itself: %v", got)
	}
}

// Whatever two readings say, there is a rise or a reason, never both, and the pair survives a capture.
func TestRiseOrReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, then := rapid.Uint64().Draw(t, "now"), rapid.Uint64().Draw(t, "then")
		r := Of(now).After(Of(then))
		by, why := r.Rise()
		if why == "" && then+by != now || why != "" && by != 0 {
			t.Fatalf("%d after %d: %d, %q", now, then, by, why)
		}
		text, err := json.Marshal(r)
		var back Reading
		if err != nil || json.Unmarshal(text, &back) != nil || !reflect.DeepEqual(r, back) {
			t.Fatalf("%s: %+v, %v", text, back, err)
		}
	})
}

func TestPlus(t *testing.T) {
	none, unread := Reading{Have: checks.NotSupported}, Reading{}
	for _, tt := range []struct {
		name       string
		a, b, want Reading
	}{
		{"both read", Of(3), Of(4), Of(7)},
		{"only one is counted", Of(3), none, Of(3)},
		{"only the other is counted", none, Of(4), Of(4)},
		{"neither is counted", none, none, none},
		{"one not read: the sum is not known", Of(3), unread, unread},
		{"the other not read", unread, Of(4), unread},
		{"a saturated one is not hidden by the other", Of(1<<32 - 1), Of(4), Of(1<<32 - 1)},
		{"nor the other way round", Of(4), Of(255), Of(255)},
	} {
		if got := tt.a.Plus(tt.b); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
