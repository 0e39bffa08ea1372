package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// A Check is what may be set for any check.
//
// An action set here replaces the one that the check's faults ask for, and nothing else: it makes no fault of what is
// none. Where it is harmless (none, watch, restart_app) a soft fault becomes a finding that does not apply and says what it
// was. A hard fault is not put aside so: it keeps its own action and says that policy asked for another. Who wants a check's
// hard faults without consequences sets its mode to observe, in which they are still told.
type Check struct {
	Mode   Mode   `json:"mode,omitempty" yaml:"mode,omitempty"`     // empty: the fleet's mode
	Action string `json:"action,omitempty" yaml:"action,omitempty"` // of the check's faults; empty: as the check says
	Share  Share  `json:"share,omitempty" yaml:"share,omitempty"`   // of the nodes that act where the mode is act; the rest observe. Not set: all
}

// ModeOf says how far a check's findings may go: its own mode or, where it has none, the fleet's. A fleet that observes can
// so switch single checks to act, and one that acts can hold single checks back. A share that For has not yet settled for a
// node counts as a node outside of it.
func (p Policy) ModeOf(id string) Mode {
	c, named := p.Checks[id]
	if family, _, one := strings.Cut(id, "/"); one && !named {
		c = p.Checks[family] // user/NAME, of user
	}
	m := p.Mode
	if c.Mode != "" {
		m = c.Mode
	}
	if m == Act && c.Share > 0 && c.Share < 1 {
		return Observe
	}
	return m
}

func (v *validator) checks(cs map[string]Check) {
	for id, c := range cs {
		oneOf(v, "checks."+id+".mode", c.Mode, "", Off, Observe, Act)
		if c.Action != "" {
			var a checks.Action
			if err := a.UnmarshalText([]byte(c.Action)); err != nil {
				v.add("checks."+id+".action", "%v", err)
			}
		}
		if c.Share != 0 && !c.Share.valid() {
			v.add("checks."+id+".share", "%v: %s", float64(c.Share), wantShare)
		}
	}
}

// A Share is a part of the nodes, above 0 and not above 1. Zero means that it was not set; a file cannot set it, for
// nobody could tell "none" from "all".
type Share float64

const wantShare = "want a share above 0 and not above 1, as 0.05 or 5%; for none of the nodes use mode: observe"

func (s Share) valid() bool { return s > 0 && s <= 1 && !math.IsNaN(float64(s)) }

// UnmarshalText reads 0.05 or 5%.
func (s *Share) UnmarshalText(b []byte) error {
	text, percent := string(b), false
	if n := len(text); n > 0 && text[n-1] == '%' {
		text, percent = text[:n-1], true
	}
	x, err := strconv.ParseFloat(text, 64)
	if percent {
		x /= 100
	}
	if err != nil || !Share(x).valid() {
		return fmt.Errorf("share %q: %s", b, wantShare)
	}
	*s = Share(x)
	return nil
}

// MarshalText writes the share as a number.
func (s Share) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(s), 'f', -1, 64), nil
}

// MarshalJSON writes the share as a number.
func (s Share) MarshalJSON() ([]byte, error) { return json.Marshal(float64(s)) }

// UnmarshalJSON reads a number, or text as in a file.
func (s *Share) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		return s.UnmarshalText([]byte(text))
	}
	return json.Unmarshal(b, (*float64)(s))
}
