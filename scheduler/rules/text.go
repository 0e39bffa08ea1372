package rules

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/assay-gpu/assay/scheduler/quota"
	"github.com/assay-gpu/assay/scheduler/sbatch"
)

// A Time is a number of seconds, written as Slurm writes limits: minutes, hours:minutes:seconds, days-hours; or with a unit,
// as 30s, 12h or 7d. 0 is not set.
type Time int64

// UnmarshalText reads a time.
func (t *Time) UnmarshalText(b []byte) error {
	s := string(b)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return fmt.Errorf("time %q: want a number of days before d", s)
		}
		*t = Time(n * 24 * 3600)
		return nil
	}
	if d, err := time.ParseDuration(s); err == nil && s != "0" {
		if d < 0 || d%time.Second != 0 {
			return fmt.Errorf("time %q: want whole seconds, not below nothing", s)
		}
		*t = Time(d / time.Second)
		return nil
	}
	d, err := sbatch.ParseLimit(s)
	if err != nil {
		return err
	}
	*t = Time(d / time.Second)
	return nil
}

// MarshalText writes days-hours:minutes:seconds.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

func (t Time) String() string {
	d, h, m, s := t/86400, t/3600%24, t/60%60, t%60
	if d > 0 {
		return fmt.Sprintf("%d-%02d:%02d:%02d", d, h, m, s)
	}
	return fmt.Sprintf("%02d:%02d:%02d", h, m, s)
}

// An Amounts is how much of each resource, as gpu=64,node=8. What it does not name is not limited.
type Amounts string

// UnmarshalText reads amounts, and refuses what cannot be read.
func (a *Amounts) UnmarshalText(b []byte) error {
	_, err := Amounts(b).limit()
	*a = Amounts(b)
	return err
}

// limit is a as package quota has it.
func (a Amounts) limit() (quota.Amounts, error) {
	if a == "" {
		return quota.None(), nil
	}
	return quota.ParseAmounts(string(a), quota.None())
}

// must is limit for amounts that were read, and so checked, before. Those that were not limit nothing.
func (a Amounts) must() quota.Amounts {
	m, err := a.limit()
	if err != nil {
		return quota.None()
	}
	return m
}

// A Share is of siblings' sum, or "parent": none of its own. 0 is not set, which counts as 1.
type Share int

// None is the share of one who should have nothing.
const none Share = -2

// UnmarshalText reads a number or parent.
func (s *Share) UnmarshalText(b []byte) error {
	if string(b) == "parent" {
		*s = quota.ShareParent
		return nil
	}
	n, err := strconv.ParseUint(string(b), 10, 31)
	if err != nil {
		return fmt.Errorf("share %q: want a whole number, or parent", b)
	}
	if *s = Share(n); n == 0 {
		*s = none
	}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Share) String() string {
	switch s {
	case quota.ShareParent:
		return "parent"
	case none:
		return "0"
	case 0:
		return "1"
	}
	return strconv.Itoa(int(s))
}

// shares is s as package quota has it.
func (s Share) shares() int {
	switch s {
	case none:
		return 0
	case 0:
		return 1
	}
	return int(s)
}

// MaxName is how long the name of a record may be, in bytes.
const MaxName = 64

// ValidName reports whether a record may be called so: letters, digits, and - _ . within.
func ValidName(s string) bool {
	if s == "" || len(s) > MaxName || s[0] == '-' || s[0] == '.' {
		return false
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// Weights are a number for each resource, as gpu=1,cpu=0.25.
type Weights string

// UnmarshalText reads weights, and refuses what cannot be read.
func (w *Weights) UnmarshalText(b []byte) error {
	_, err := Weights(b).values()
	*w = Weights(b)
	return err
}

func (w Weights) values() (out [quota.Resources]float64, err error) {
	if w == "" {
		return out, nil
	}
	for part := range strings.SplitSeq(string(w), ",") {
		name, text, _ := strings.Cut(part, "=")
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0) || x > 1e12 {
			return out, fmt.Errorf("weight %q: want RESOURCE=NUMBER, as gpu=1", part)
		}
		found := false
		for r := range quota.Resources {
			if quota.Resource(r).String() == name {
				out[r], found = x, true
			}
		}
		if !found {
			return out, fmt.Errorf("weight %q: no resource %q; there are gpu, node, cpu and mem", part, name)
		}
	}
	return out, nil
}
