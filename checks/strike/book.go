package strike

import (
	"strings"
	"time"
)

// Bounds on what is remembered. What does not fit is not remembered: its windows never fill, so nothing fires on it.
const (
	maxSubjects = 4096
	maxNames    = 256
)

// A Book is all that is remembered of one boot, by subject (checks.Subject.Key, or a name of the check's own). It is one
// check run's own: not for use by several goroutines. Its JSON form is the Book itself.
type Book struct {
	BootID   string              `json:"boot_id"`
	Subjects map[string]*History `json:"subjects"`
}

// A History is what is remembered of one subject, by the names its checks give.
type History struct {
	Counters map[string]Counter `json:"counters,omitempty"`
	Lasting  map[string]Lasting `json:"lasting,omitempty"`
	Flaps    map[string]Flaps   `json:"flaps,omitempty"`
	Latches  map[string]Latch   `json:"latches,omitempty"`
}

// NewBook returns an empty book of the boot.
func NewBook(bootID string) *Book { return &Book{BootID: bootID, Subjects: map[string]*History{}} }

// Of returns the book if it is of the boot, else an empty one: what was before a boot proves nothing after it.
func (b *Book) Of(bootID string) *Book {
	if b == nil || b.BootID != bootID || b.Subjects == nil {
		return NewBook(bootID)
	}
	return b
}

// history finds or makes a subject's history; nil when there is no room.
func (b *Book) history(subject string) *History {
	if h := b.Subjects[subject]; h != nil {
		return h
	}
	if len(b.Subjects) >= maxSubjects {
		return nil
	}
	h := &History{}
	b.Subjects[subject] = h
	return h
}

// put sets m[name], unless m is full.
func put[V any](m *map[string]V, name string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	if _, have := (*m)[name]; have || len(*m) < maxNames {
		(*m)[name] = v
	}
}

// Count takes a reading of one of the subject's counters and returns its rise over the last span. A counter that is
// watched over two spans has two names.
func (b *Book) Count(subject, name string, at time.Duration, raw uint64, span time.Duration, kind Kind) Delta {
	h := b.history(subject)
	if h == nil {
		return Delta{}
	}
	c, d := h.Counters[name].Read(at, raw, span, kind)
	put(&h.Counters, name, c)
	return d
}

// Last takes a reading of a state and returns how long it has held; on is false and 0 when it does not. gap is as for
// Lasting.See.
func (b *Book) Last(subject, name string, at time.Duration, on bool, gap time.Duration) time.Duration {
	h := b.history(subject)
	if h == nil {
		return 0
	}
	l := h.Lasting[name].See(at, on, gap)
	put(&h.Lasting, name, l)
	return l.For()
}

// Steady is Last with a counter that rises when the state ends: see Lasting.SeeSteady.
func (b *Book) Steady(subject, name string, at time.Duration, on bool, beat uint64) time.Duration {
	h := b.history(subject)
	if h == nil {
		return 0
	}
	l := h.Lasting[name].SeeSteady(at, on, beat)
	put(&h.Lasting, name, l)
	return l.For()
}

// Flap takes a reading of whether the subject is up.
func (b *Book) Flap(subject, name string, at time.Duration, up bool, r FlapRule) Flaps {
	h := b.history(subject)
	if h == nil {
		return Flaps{Up: up}
	}
	f := h.Flaps[name].See(at, up, r)
	put(&h.Flaps, name, f)
	return f
}

// Strike takes a reading of whether the subject is at fault, and returns whether it counts as such: see Latch.Fails.
func (b *Book) Strike(subject, name string, bad bool, limit int) bool {
	h := b.history(subject)
	if h == nil {
		return bad
	}
	l := h.Latches[name].See(bad)
	put(&h.Latches, name, l)
	return l.Fails(limit)
}

// Clear forgets the subject, strikes and flaps included, and reports whether anything was known of it. No other
// subject is touched.
func (b *Book) Clear(subject string) bool {
	_, had := b.Subjects[subject]
	delete(b.Subjects, subject)
	return had
}

// Retain forgets the subjects whose names begin with prefix and that keep does not want: processes that have ended.
func (b *Book) Retain(prefix string, keep func(subject string) bool) {
	for s := range b.Subjects {
		if strings.HasPrefix(s, prefix) && !keep(s) {
			delete(b.Subjects, s)
		}
	}
}
