package sbatch

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// ParseLimit reads a time as sbatch has it: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes
// and days-hours:minutes:seconds. What is longer than maxLimit is an error.
func ParseLimit(s string) (time.Duration, error) {
	bad := fmt.Errorf("time %q: want minutes, hours:minutes:seconds or days-hours:minutes:seconds", s)
	days, rest, hasDays := strings.Cut(s, "-")
	var total time.Duration
	if hasDays {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, bad
		}
		total = time.Duration(n) * 24 * time.Hour
	} else {
		rest = s
	}
	fields := strings.Split(rest, ":")
	var units []time.Duration
	switch {
	case hasDays && len(fields) <= 3:
		units = []time.Duration{time.Hour, time.Minute, time.Second}
	case len(fields) == 1:
		units = []time.Duration{time.Minute}
	case len(fields) == 2:
		units = []time.Duration{time.Minute, time.Second}
	case len(fields) == 3:
		units = []time.Duration{time.Hour, time.Minute, time.Second}
	default:
		return 0, bad
	}
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 24)
		if err != nil {
			return 0, bad
		}
		if total += time.Duration(n) * units[i]; time.Duration(n) > maxLimit/units[i] || total > maxLimit {
			return 0, fmt.Errorf("time %q: longer than %d days", s, maxLimit/(24*time.Hour))
		}
	}
	return total, nil
}

// maxLimit is the longest time: as many days as the field for days holds, well below what a Duration does.
const maxLimit = (1<<16 - 1) * 24 * time.Hour

// certified is LEVEL[:AGE][:through]: how deep the certificate must be, how young, and whether it must hold for the whole
// limit.
func certified(r *Request, v string) error {
	parts := strings.Split(v, ":")
	if err := r.Gang.Level.UnmarshalText([]byte(parts[0])); err != nil || r.Gang.Level == checks.NoLevel {
		return fmt.Errorf("%q: want quick-mig, quick, standard, soak or intake first", v)
	}
	for _, part := range parts[1:] {
		if part == "through" {
			r.Gang.Through = true
			continue
		}
		d, err := age(part)
		if err != nil {
			return fmt.Errorf("%q: %w", v, err)
		}
		r.Gang.MaxAge = d
	}
	return nil
}

// age is a duration with a unit: 24h, 7d.
func age(s string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		days, err := strconv.ParseUint(n, 10, 16)
		if err != nil || days == 0 {
			return 0, fmt.Errorf("age %q: want a number and a unit, as 24h or 7d", s)
		}
		return time.Duration(days) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("age %q: want a number and a unit, as 24h or 7d", s)
	}
	return d, nil
}
