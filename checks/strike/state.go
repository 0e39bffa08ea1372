package strike

import "time"

// A Lasting is how long a state has held. The zero value does not hold.
type Lasting struct {
	On    bool          `json:"on"`
	Since time.Duration `json:"since"`          // boot clock of the first reading that showed it
	At    time.Duration `json:"at"`             // boot clock of the last
	Beat  uint64        `json:"beat,omitempty"` // a counter that tells of what happened between readings
}

// See takes a reading. Readings further apart than gap say nothing of the time between them: the state then counts from
// the later one. With a gap of 0 the state is taken to have held between any two readings that show it.
func (l Lasting) See(at time.Duration, on bool, gap time.Duration) Lasting {
	switch {
	case !on:
		return Lasting{}
	case !l.On, gap > 0 && at-l.At > gap:
		l.Since = at
	}
	l.On, l.At = true, max(at, l.At)
	return l
}

// SeeSteady takes a reading with a counter that rises when the state ends: where that has changed, the state has ended and
// begun anew between the readings, however alike they are.
func (l Lasting) SeeSteady(at time.Duration, on bool, beat uint64) Lasting {
	if l.On && l.Beat != beat {
		l = Lasting{}
	}
	l = l.See(at, on, 0)
	l.Beat = beat
	return l
}

// For is how long the state has held at the last reading.
func (l Lasting) For() time.Duration { return l.At - l.Since }

// A Flaps counts how often something went down and came back. The zero value has never been read.
type Flaps struct {
	Up     bool            `json:"up"`
	WasUp  bool            `json:"was_up"`            // it has been up in this boot: coming up the first time is no flap
	Since  time.Duration   `json:"since"`             // down: boot clock of the first reading that showed it so
	Times  []time.Duration `json:"times,omitempty"`   // boot clock of each return within the window, oldest first
	Held   bool            `json:"held,omitempty"`    // it flapped too often once, and stays at fault until cleared or booted
	HeldBy int             `json:"held_by,omitempty"` // as often as that
}

// A FlapRule says what a flap is and how many are too many.
type FlapRule struct {
	MinDown time.Duration // a shorter time down does not count
	Window  time.Duration
	Count   int // this many within the window are too many; 0: any number is fine
}

// maxFlaps bounds the returns remembered.
const maxFlaps = 64

// See takes a reading.
func (f Flaps) See(at time.Duration, up bool, r FlapRule) Flaps {
	var times []time.Duration
	for _, t := range f.Times {
		if at-t <= r.Window {
			times = append(times, t)
		}
	}
	switch {
	case up && !f.Up && f.WasUp && at-f.Since >= r.MinDown:
		times = append(times, at)
	case !up && f.Up:
		f.Since = at
	}
	if len(times) > maxFlaps {
		times = times[len(times)-maxFlaps:]
	}
	f.Up, f.WasUp, f.Times = up, f.WasUp || up, times
	if r.Count > 0 && len(times) >= r.Count {
		f.Held, f.HeldBy = true, max(f.HeldBy, len(times))
	}
	return f
}

// A Latch counts strikes: how often a fault went away by itself. The zero value has none.
type Latch struct {
	Bad     bool `json:"bad"`
	Strikes int  `json:"strikes"`
}

// See takes a reading.
func (l Latch) See(bad bool) Latch {
	if l.Bad && !bad {
		l.Strikes++
	}
	l.Bad = bad
	return l
}

// Fails reports whether the subject counts as bad: it is, or it has recovered limit times, and is not believed again
// until cleared or booted. With a limit of 0 a recovery is always believed.
func (l Latch) Fails(limit int) bool { return l.Bad || limit > 0 && l.Strikes >= limit }
