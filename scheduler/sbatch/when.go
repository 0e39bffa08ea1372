package sbatch

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseWhen reads a time as sbatch --begin has it: a date and time of day (2026-12-24T08:00, in the zone of now unless it
// names one), a date, a time of day (the next there is), today, tomorrow, midnight, noon, teatime, or now with so much added:
// now+30 (seconds), now+2hours.
func ParseWhen(v string, now time.Time) (time.Time, error) {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(form, v, now.Location()); err == nil {
			return t, nil
		}
	}
	midnight := func(days int) time.Time {
		y, m, d := now.Date()
		return time.Date(y, m, d+days, 0, 0, 0, 0, now.Location())
	}
	next := func(h, m, s int) time.Time {
		y, mo, d := now.Date()
		t := time.Date(y, mo, d, h, m, s, 0, now.Location())
		if !t.After(now) {
			t = time.Date(y, mo, d+1, h, m, s, 0, now.Location())
		}
		return t
	}
	word := strings.ToLower(v)
	switch word {
	case "now":
		return now, nil
	case "today":
		return midnight(0), nil
	case "tomorrow":
		return midnight(1), nil
	case "midnight":
		return next(0, 0, 0), nil
	case "noon":
		return next(12, 0, 0), nil
	case "fika":
		return next(15, 0, 0), nil
	case "teatime":
		return next(16, 0, 0), nil
	}
	if more, ok := strings.CutPrefix(word, "now+"); ok {
		digits := strings.TrimRight(more, "abcdefghijklmnopqrstuvwxyz")
		n, err := strconv.ParseUint(digits, 10, 32)
		unit, known := units[strings.TrimSuffix(more[len(digits):], "s")]
		if err == nil && known {
			return now.Add(time.Duration(n) * unit), nil
		}
		return time.Time{}, fmt.Errorf("%q: want now+N, in seconds, or with minutes, hours, days or weeks after it", v)
	}
	for _, form := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(form, v); err == nil {
			return next(t.Clock()), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: want a date and time as 2026-12-24T08:00, a time of day, or now+2hours", v)
}

var units = map[string]time.Duration{"": time.Second, "second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour}
