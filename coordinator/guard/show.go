package guard

import (
	"cmp"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// A Budget is one window's room.
type Budget struct {
	Scope string
	Spent int
	Limit int
	Until time.Time // when the oldest charge leaves the window; zero without one
}

// A Shown is the guard as a person reads it.
type Shown struct {
	Freezer     *Freezer
	Schedulable int
	Budgets     []Budget // fleet first, then leaves and reasons with a charge, by name
	Storms      []Storm
	HardHour    int // nodes with a hard revocation within the hour
}

// Show is the view at t for a person.
func (v View) Show(t time.Time) Shown {
	out := Shown{Freezer: v.books.Freezer, Schedulable: v.census.Schedulable, HardHour: v.books.Hard.since(t, hour).Count()}
	for _, s := range v.books.Storms {
		if t.Before(s.Until) {
			out.Storms = append(out.Storms, s)
		}
	}
	var leaves, reasons []string
	for _, e := range v.books.Spent {
		if !within(e.At, t, hour) {
			continue
		}
		if e.Leaf != "" && !slices.Contains(leaves, e.Leaf) {
			leaves = append(leaves, e.Leaf)
		}
		if e.Reason != "" && !slices.Contains(reasons, e.Reason) {
			reasons = append(reasons, e.Reason)
		}
	}
	slices.Sort(leaves)
	slices.Sort(reasons)
	scopes := v.scopes("", "")
	for _, l := range leaves {
		scopes = append(scopes, v.scopes(l, "")[2])
	}
	for _, r := range reasons {
		scopes = append(scopes, v.scopes("", r)[2])
	}
	for _, s := range scopes {
		nodes, limit, until := v.state(s, t)
		out.Budgets = append(out.Budgets, Budget{Scope: s.name, Spent: len(nodes), Limit: limit, Until: until})
	}
	return out
}

// A HeldBack is a node that waits for room.
type HeldBack struct {
	Node   string
	Hard   bool
	Action checks.Action
	Since  time.Time
}

// Next orders held-back nodes as room is given to them: hard faults first, then the severest action, then who waits
// longest, then by name. The argument is left as it was.
func Next(nodes []HeldBack) []HeldBack {
	out := slices.Clone(nodes)
	slices.SortStableFunc(out, func(a, b HeldBack) int {
		if a.Hard != b.Hard {
			if a.Hard {
				return -1
			}
			return 1
		}
		return cmp.Or(-cmp.Compare(a.Action, b.Action), a.Since.Compare(b.Since), cmp.Compare(a.Node, b.Node))
	})
	return out
}
