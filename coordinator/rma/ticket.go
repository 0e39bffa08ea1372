// Package rma knows what becomes of hardware: the tickets of parts that go back to the vendor, each part's history by its
// serial, and which nodes fail more than others. It is pure.
package rma

import (
	"fmt"
	"slices"
	"time"
)

// Where a ticket stands, in order.
const (
	Opened   = "opened"   // on our side
	Accepted = "accepted" // the vendor has taken it on
	Shipped  = "shipped"  // the part is on its way to the vendor
	Received = "received" // the vendor has it
	Replaced = "replaced" // another part is in the node, by its serial
	Returned = "returned" // the same part is back, with an outcome
	Verified = "verified" // the intake screen passed on what is in the node now
	Closed   = "closed"
)

// byPerson are the states that a person sets, in order. Replaced comes of a new serial, returned of an outcome, verified of
// the intake screen.
var byPerson = []string{Opened, Accepted, Shipped, Received}

// Reminders: how long a ticket may stand still before it is asked after.
var reminders = map[string]time.Duration{
	Opened:   3 * 24 * time.Hour,
	Accepted: 5 * 24 * time.Hour,
	Shipped:  7 * 24 * time.Hour,
	Received: 21 * 24 * time.Hour,
	Replaced: 2 * 24 * time.Hour, // the intake screen takes a day at the most
	Returned: 2 * 24 * time.Hour,
}

// A Ticket is one part on its way to the vendor and back.
type Ticket struct {
	ID       string    `json:"id"` // R-7F3K
	Case     string    `json:"case"`
	Node     string    `json:"node"`
	Part     string    `json:"part"`             // as the case names it: gpu/GPU-…
	Serial   string    `json:"serial,omitempty"` // of the part; without one its UUID names it
	UUID     string    `json:"uuid,omitempty"`
	Product  string    `json:"product,omitempty"`
	Slot     string    `json:"slot,omitempty"` // PCI address and index, as "0000:3b:00.0 GPU 3"
	Cause    string    `json:"cause"`
	State    string    `json:"state"`
	Owner    string    `json:"owner"`
	Opened   time.Time `json:"opened"`
	Moved    time.Time `json:"moved"`             // when it came to State
	Remind   time.Time `json:"remind,omitzero"`   // when its owner is reminded; zero: closed
	Vendor   string    `json:"vendor,omitempty"`  // the vendor's own number for it
	Warranty time.Time `json:"warranty,omitzero"` // of the part, as far as somebody said
	Fitted   string    `json:"fitted,omitempty"`  // serial or UUID of the part that is in its place now
	Outcome  string    `json:"outcome,omitempty"`
	Blame    string    `json:"blame,omitempty"` // slot or board, where the ledger tells them apart, with why
	Steps    []Step    `json:"steps"`
	Seq      int       `json:"seq"`            // counts its changes
	Told     int       `json:"told,omitempty"` // the last change that the site's hooks were told
}

// A Step is one movement of a ticket.
type Step struct {
	At    time.Time `json:"at"`
	State string    `json:"state"`
	By    string    `json:"by"`
	Note  string    `json:"note,omitempty"`
}

// stepsKept bounds what one ticket holds.
const stepsKept = 100

// An OrderError says why a ticket does not move.
type OrderError struct{ Ticket, Why, Do string }

func (e *OrderError) Error() string { return "ticket " + e.Ticket + ": " + e.Why }

// Hint says what to do instead.
func (e *OrderError) Hint() string { return e.Do }

// Status is HTTP's 409, conflict.
func (e *OrderError) Status() int { return 409 }

// Done reports whether nothing more is expected of the ticket.
func (t Ticket) Done() bool { return t.State == Closed }

// Move brings the ticket to a state and sets the next reminder.
func (t Ticket) Move(state, by, note string, at time.Time) Ticket {
	t.State, t.Moved, t.Seq = state, at, t.Seq+1
	t.Steps = append(slices.Clone(t.Steps), Step{at, state, by, note})
	if over := len(t.Steps) - stepsKept; over > 0 {
		t.Steps = t.Steps[over:]
	}
	t.Remind = time.Time{}
	if d, ok := reminders[state]; ok {
		t.Remind = at.Add(d)
	}
	return t
}

// Advance is a person's word on where the ticket is. Steps may be left out, never taken back.
func (t Ticket) Advance(state, by, note string, at time.Time) (Ticket, error) {
	switch to, now := slices.Index(byPerson, state), slices.Index(byPerson, t.State); {
	case t.Done():
		return t, &OrderError{t.ID, "it is closed: " + t.Outcome, "a note in its case still can be added"}
	case state == Closed && now < 0:
		return t.Close(by, note, at), nil
	case to < 0:
		return t, &OrderError{t.ID, fmt.Sprintf("%q is nothing that a person says", state), "accepted, shipped and received are; replaced comes of a new serial, returned of --outcome, verified of the intake screen"}
	case now < 0:
		return t, &OrderError{t.ID, "the part is back: " + t.State, "the intake screen decides"}
	case to <= now:
		return t, &OrderError{t.ID, "it is " + t.State + " already", ""}
	}
	return t.Move(state, by, note, at), nil
}

// Close ends the ticket.
func (t Ticket) Close(by, outcome string, at time.Time) Ticket {
	if outcome != "" {
		t.Outcome = outcome
	}
	return t.Move(Closed, by, outcome, at)
}

// Overdue reports whether the ticket's owner is to be reminded.
func (t Ticket) Overdue(at time.Time) bool { return !t.Remind.IsZero() && !at.Before(t.Remind) }

// Reminded puts the next reminder off by the same time again.
func (t Ticket) Reminded(at time.Time) Ticket {
	t.Remind = at.Add(max(reminders[t.State], 24*time.Hour))
	return t
}
