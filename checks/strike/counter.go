package strike

import "time"

// A Kind says how a counter is built.
type Kind struct {
	Bits      int  // its width; 0 stands for 64
	Saturates bool // it stops at its greatest value instead of beginning anew
}

// The counters met in sysfs and in the driver.
var (
	Counter64   = Kind{}                          // wraps in no lifetime
	Counter32   = Kind{Bits: 32}                  // wraps
	Saturates32 = Kind{Bits: 32, Saturates: true} // as InfiniBand's symbol_error has it, IBTA 16.1.3.5
	Saturates16 = Kind{Bits: 16, Saturates: true} // as port_rcv_errors
	Saturates8  = Kind{Bits: 8, Saturates: true}  // as link_downed and link_error_recovery
	Saturates4  = Kind{Bits: 4, Saturates: true}  // as local_link_integrity_errors and excessive_buffer_overrun_errors
)

// Max is the greatest value the counter can show.
func (k Kind) Max() uint64 {
	if k.Bits <= 0 || k.Bits >= 64 {
		return 1<<64 - 1
	}
	return 1<<k.Bits - 1
}

// marks is about how many readings of one window are kept: the window's far end moves in steps of a 32nd of it.
const marks = 32

// A Counter is what is remembered of one counter. The zero value has never been read.
type Counter struct {
	Seen  bool          `json:"seen"`
	At    time.Duration `json:"at"`    // boot clock of the last reading
	Raw   uint64        `json:"raw"`   // the last reading
	Total uint64        `json:"total"` // its rise since the first reading, over wraps and resets
	Marks []Mark        `json:"marks"` // earlier readings, oldest first
}

// A Mark is what Total was at some time.
type Mark struct {
	At    time.Duration `json:"at"`
	Total uint64        `json:"total"`
	Reset bool          `json:"reset,omitempty"` // the counter began anew between the mark before and this one
}

// A Delta is how far a counter rose within a window.
type Delta struct {
	Rise  uint64        `json:"rise"`            // at least this much: what came just before a reset was not seen
	Over  time.Duration `json:"over"`            // the time it rose in; between one and two windows when Full
	Full  bool          `json:"full"`            // the readings cover a whole window; no limit may fire before
	Reset bool          `json:"reset,omitempty"` // the counter began anew within it
	Stuck bool          `json:"stuck,omitempty"` // the counter stands at its greatest value and cannot show more
}

// Exceeds reports whether the counter rose by more than limit in a full window.
func (d Delta) Exceeds(limit uint64) bool { return d.Full && d.Rise > limit }

// PerSecond is the mean rate; 0 when no time passed.
func (d Delta) PerSecond() float64 {
	if d.Over <= 0 {
		return 0
	}
	return float64(d.Rise) / d.Over.Seconds()
}

// Read takes a reading and returns the counter after it with its rise over the last span. A reading that is not later than
// the last one changes nothing. Readings further apart than the window begin it anew: when the counter rose in between
// cannot be told.
func (c Counter) Read(at time.Duration, raw uint64, span time.Duration, kind Kind) (Counter, Delta) {
	if c.Seen && at <= c.At {
		return c, c.delta(span, kind)
	}
	reset := false
	switch {
	case !c.Seen:
	case raw >= c.Raw:
		c.Total += raw - c.Raw
	case kind.wrapped(c.Raw, raw):
		c.Total += kind.Max() - c.Raw + raw + 1
	default:
		c.Total, reset = c.Total+raw, true
	}
	if c.Seen && at-c.At > span {
		c.Marks = nil
	}
	c.Seen, c.At, c.Raw = true, at, raw
	c.mark(span, reset)
	return c, c.delta(span, kind)
}

// wrapped reports whether a counter that fell from a to b has passed its greatest value: from its last quarter to its
// first. Any other fall is a reset.
func (k Kind) wrapped(a, b uint64) bool {
	quarter := k.Max() / 4
	return !k.Saturates && k.Max() != 1<<64-1 && a > k.Max()-quarter && b < quarter
}

// mark keeps the reading if none was kept shortly before, and forgets what no window reaches any more.
func (c *Counter) mark(span time.Duration, reset bool) {
	ms := append([]Mark(nil), c.Marks...)
	if n := len(ms); n == 0 || reset || c.At-ms[n-1].At >= span/marks {
		ms = append(ms, Mark{c.At, c.Total, reset})
	}
	for len(ms) > 1 && c.At-ms[1].At >= span {
		ms = ms[1:]
	}
	if len(ms) > 4*marks { // a counter that is reset at every reading
		ms = ms[len(ms)-4*marks:]
	}
	c.Marks = ms
}

// delta measures from the oldest mark: the youngest that is a whole window old, if there is one.
func (c Counter) delta(span time.Duration, kind Kind) Delta {
	d := Delta{Stuck: kind.Saturates && c.Raw == kind.Max()}
	if len(c.Marks) == 0 {
		return d
	}
	first := c.Marks[0]
	d.Rise, d.Over = c.Total-first.Total, c.At-first.At
	d.Full = d.Over >= span && d.Over > 0
	for _, m := range c.Marks[1:] {
		d.Reset = d.Reset || m.Reset
	}
	return d
}
