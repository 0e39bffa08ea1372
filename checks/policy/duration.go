package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The units in which sections write their defaults.
const (
	second = Duration(time.Second)
	minute = Duration(time.Minute)
	hour   = Duration(time.Hour)
)

const day = 24 * time.Hour

// UnmarshalText reads a duration: numbers with the units d, h, m, s, ms, us or ns, as 30s, 12h, 1h30m or 7d. A day is 24 hours
// and comes first. A number without a unit is refused: nobody can tell seconds from minutes.
func (d *Duration) UnmarshalText(b []byte) error {
	text := string(b)
	bad := func() error { return fmt.Errorf("duration %q: want a number and a unit, as 30s, 12h or 7d", text) }
	rest, sign := text, time.Duration(1)
	if strings.HasPrefix(rest, "-") {
		rest, sign = rest[1:], -1
	}
	var total time.Duration
	if n, after, ok := strings.Cut(rest, "d"); ok {
		days, err := strconv.ParseUint(n, 10, 32)
		if err != nil || days > uint64((1<<63-1)/day) {
			return bad()
		}
		total, rest = time.Duration(days)*day, after
		if rest == "" {
			*d = Duration(sign * total)
			return nil
		}
	}
	if rest == "" || rest[0] < '.' || rest[0] > '9' { // a sign of its own would pass ParseDuration
		return bad()
	}
	t, err := time.ParseDuration(rest)
	if err != nil || total+t < total {
		return bad()
	}
	if strings.Contains(text, "d") && strings.Trim(rest, "0123456789") == "" { // 7d0: a bare 0 has no unit
		return bad()
	}
	*d = Duration(sign * (total + t))
	return nil
}

// MarshalText writes the duration in the form that UnmarshalText reads, whole days as 7d.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d Duration) String() string {
	t := time.Duration(d)
	if t != 0 && t%day == 0 {
		return strconv.FormatInt(int64(t/day), 10) + "d"
	}
	s := t.String()
	// 12h0m0s says no more than 12h.
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
