package rma

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Part is one piece of hardware, by its serial, wherever it has been.
type Part struct {
	Serial  string  `json:"serial"` // or the UUID of a board that has no serial
	UUID    string  `json:"uuid,omitempty"`
	Product string  `json:"product,omitempty"`
	Places  []Place `json:"places"` // oldest first
	Faults  []Fault `json:"faults,omitempty"`
}

// A Place is where a part was, and from when.
type Place struct {
	Node  string    `json:"node"`
	Slot  string    `json:"slot"` // PCI address: the index may change with any boot
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"` // zero: it is there still
}

// A Fault is one case about the part.
type Fault struct {
	At      time.Time `json:"at"`
	Case    string    `json:"case"`
	Cause   string    `json:"cause"`
	Node    string    `json:"node"`
	Slot    string    `json:"slot"`
	Outcome string    `json:"outcome,omitempty"`
}

// What is kept of one part at the most.
const (
	placesKept = 32
	faultsKept = 64
)

// Fit notes that the part is at a place. It reports whether that is news.
func (p Part) Fit(node, slot string, at time.Time) (Part, bool) {
	if n := len(p.Places); n > 0 {
		last := p.Places[n-1]
		if last.Node == node && last.Slot == slot && last.Until.IsZero() {
			return p, false
		}
	}
	p, _ = p.Gone(at)
	p.Places = append(slices.Clone(p.Places), Place{Node: node, Slot: slot, Since: at})
	p.Places = p.Places[max(0, len(p.Places)-placesKept):]
	return p, true
}

// Gone notes that the part is not where it was any more. It reports whether that is news.
func (p Part) Gone(at time.Time) (Part, bool) {
	n := len(p.Places)
	if n == 0 || !p.Places[n-1].Until.IsZero() {
		return p, false
	}
	p.Places = slices.Clone(p.Places)
	p.Places[n-1].Until = at
	return p, true
}

// Failed adds a fault, or the outcome of one that is there.
func (p Part) Failed(f Fault) Part {
	p.Faults = slices.Clone(p.Faults)
	if i := slices.IndexFunc(p.Faults, func(x Fault) bool { return x.Case == f.Case }); i >= 0 {
		if f.Outcome != "" {
			p.Faults[i].Outcome = f.Outcome
		}
		if f.Cause != "" {
			p.Faults[i].Cause = f.Cause // a graver fault gives the case its name
		}
		return p
	}
	p.Faults = append(p.Faults, f)
	p.Faults = p.Faults[max(0, len(p.Faults)-faultsKept):]
	return p
}

// Attribute says whether a cause follows the board or stays with the slot, where the ledger can tell: the board, when the
// same one failed alike in two slots; the slot, when two boards failed alike in it. Empty when it cannot, or both are true.
func Attribute(serial, node, slot, cause string, parts map[string]Part) string {
	var slots, boards []string
	for _, f := range parts[serial].Faults {
		if at := f.Node + " " + f.Slot; f.Cause == cause && f.Slot != "" && !slices.Contains(slots, at) {
			slots = append(slots, at)
		}
	}
	for id, p := range parts {
		for _, f := range p.Faults {
			if f.Cause == cause && f.Node == node && f.Slot == slot && slot != "" && !slices.Contains(boards, id) {
				boards = append(boards, id)
			}
		}
	}
	slices.Sort(slots)
	slices.Sort(boards)
	switch {
	case len(slots) > 1 && len(boards) < 2:
		return fmt.Sprintf("board: %s in %s", cause, strings.Join(slots, " and in "))
	case len(boards) > 1 && len(slots) < 2:
		return fmt.Sprintf("slot: %s on %s", cause, strings.Join(boards, " and on "))
	}
	return ""
}
