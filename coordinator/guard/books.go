// Package guard keeps the budgets that bound how much capacity assay may take by itself, and stops it when one reason
// turns up on too many nodes at once: then the fault is more likely ours than the hardware's.
//
// Books are plain values, kept in etcd as JSON. Every method returns new books and leaves the old ones as they were.
// The package is pure.
package guard

import (
	"maps"
	"slices"
	"time"
)

// Books are what the guard remembers.
type Books struct {
	Spent   []Entry          `json:"spent,omitempty"`     // capacity taken within the last day, oldest first
	Hard    Tally            `json:"hard_hour,omitempty"` // hard revocations within the last hour: counted, never refused
	Seen    map[string]Tally `json:"sighted,omitempty"`   // by reason: findings within the storm window
	Rest    Rest             `json:"rest,omitzero"`       // which nodes are counted without a name
	Storms  []Storm          `json:"storms,omitempty"`    // standing ones
	Pages   []Paged          `json:"pages,omitempty"`     // sent within the last hour, so that none is sent twice
	Freezer *Freezer         `json:"freezer,omitempty"`   // nil: not frozen
}

// A Charge is one automatic step that takes, or a hard fault that took, capacity.
type Charge struct {
	Node, Leaf, Reason string
	Step               string // suspend, drain, refuse, screen, kill
	At                 time.Time
	Hard               bool // a hard fault's revocation: counted, never refused
}

// An Entry is a charge in the books, with the fleet's size just before it: the size at the start of any window that
// this entry opens.
type Entry struct {
	Node        string    `json:"node"`
	Leaf        string    `json:"leaf,omitempty"`
	Reason      string    `json:"reason"`
	Step        string    `json:"step"`
	At          time.Time `json:"at"`
	Schedulable int       `json:"schedulable"`
	LeafSize    int       `json:"leaf_size,omitempty"`
}

// A Census is how many nodes there are to take from.
type Census struct {
	Schedulable int            // GPU nodes that may run work now
	Leaf        map[string]int // of those, under each leaf switch
	Exposed     map[string]int // by reason: nodes that could show it; a reason not named: all
}

// A Storm is one reason on too many nodes. While it stands nothing is taken for that reason.
type Storm struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	Until  time.Time `json:"until"`
	Nodes  []string  `json:"nodes"`           // some of those at the time it was called
	Count  int       `json:"count,omitempty"` // all of them; 0: as many as are named
}

// Size is how many nodes it was called for.
func (s Storm) Size() int { return max(s.Count, len(s.Nodes)) }

// A Freezer is who stopped all automatic action, when and why.
type Freezer struct {
	By  string    `json:"by"`
	Why string    `json:"why"`
	At  time.Time `json:"at"`
}

// A Paged is a page that has been sent.
type Paged struct {
	Key string    `json:"key"`
	At  time.Time `json:"at"`
}

// An Alert is something a person must be told, once.
type Alert struct {
	Reason string // storm, hard_faults
	Text   string
}

const (
	hour = time.Hour
	day  = 24 * time.Hour
)

func (b Books) clone() Books {
	b.Spent, b.Seen = slices.Clone(b.Spent), maps.Clone(b.Seen) // tallies and sketches are never changed in place
	b.Storms, b.Pages = slices.Clone(b.Storms), slices.Clone(b.Pages)
	if b.Freezer != nil {
		f := *b.Freezer
		b.Freezer = &f
	}
	return b
}

// Prune forgets what no window at t can reach.
func (b Books) Prune(t time.Time, stormWindow time.Duration) Books {
	b = b.clone()
	b.Spent = slices.DeleteFunc(b.Spent, func(e Entry) bool { return !within(e.At, t, day) })
	b.Hard = b.Hard.since(t, hour)
	for reason, seen := range b.Seen {
		if seen = seen.since(t, stormWindow); len(seen) > 0 {
			b.Seen[reason] = seen
		} else {
			delete(b.Seen, reason)
		}
	}
	if len(b.Seen) == 0 {
		b.Seen = nil
	}
	b.Rest = Rest{b.Rest.Hard.since(t), b.Rest.Seen.since(t)}
	b.Storms = slices.DeleteFunc(b.Storms, func(s Storm) bool { return !t.Before(s.Until) })
	b.Pages = slices.DeleteFunc(b.Pages, func(p Paged) bool { return !within(p.At, t, hour) })
	return b
}

// within reports whether x lies in the window of length d that ends at t. A later x counts: leader time never goes
// back, so only a damaged record could be later, and that must not open room.
func within(x, t time.Time, d time.Duration) bool { return x.After(t.Add(-d)) }

// Freeze stops all automatic action. Freezing frozen books keeps the first freeze.
func (b Books) Freeze(by, why string, at time.Time) Books {
	b = b.clone()
	if b.Freezer == nil {
		b.Freezer = &Freezer{By: by, Why: why, At: at}
	}
	return b
}

// Thaw ends a freeze and every storm. What was spent stays spent; sightings that made a storm are forgotten, so that
// it is called again only by new ones.
func (b Books) Thaw() Books {
	b = b.clone()
	b.Freezer = nil
	for _, s := range b.Storms {
		delete(b.Seen, s.Reason)
	}
	if len(b.Seen) == 0 {
		b.Seen = nil
	}
	b.Storms = nil
	return b
}

// Page records a page under key and reports whether it is the first within the hour: a page of which a thousand nodes
// have the same need is sent once.
func (b Books) Page(key string, at time.Time) (Books, bool) {
	for _, p := range b.Pages {
		if p.Key == key && within(p.At, at, hour) {
			return b, false
		}
	}
	b = b.clone()
	b.Pages = append(slices.DeleteFunc(b.Pages, func(p Paged) bool { return !within(p.At, at, hour) }), Paged{key, at})
	b.Pages = b.Pages[max(0, len(b.Pages)-pagesKept):]
	return b, true
}
