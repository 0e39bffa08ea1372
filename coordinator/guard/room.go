package guard

import (
	"fmt"
	"math"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
)

// A View answers for one moment's policy, census and books. It is what lifecycle.Step asks for headroom.
type View struct {
	policy policy.Guard
	census Census
	books  Books
}

// New returns the view.
func New(p policy.Guard, c Census, b Books) View { return View{p, c, b} }

// Room reports whether node may be taken by step for reason at t; if not, why, in words with numbers. A node that was
// charged within a window takes no more room in it: its capacity is gone already.
func (v View) Room(node, leaf, reason, step string, t time.Time) (bool, string) {
	if f := v.books.Freezer; f != nil {
		return false, fmt.Sprintf("guard frozen by %s since %s: %s", f.By, f.At.UTC().Format(time.RFC3339), f.Why)
	}
	if s, ok := v.books.storm(reason, t); ok {
		return false, fmt.Sprintf("storm: %s on %d nodes, nothing taken for it until %s", reason, s.Size(), s.Until.UTC().Format(time.RFC3339))
	}
	for _, s := range v.scopes(leaf, reason) {
		nodes, limit, _ := v.state(s, t)
		if contains(nodes, node) || len(nodes) < limit {
			continue
		}
		return false, fmt.Sprintf("%s: %d of %d used", s.name, len(nodes), limit)
	}
	if v.policy.DryRun {
		return false, DryRun
	}
	return true, ""
}

// DryRun is why nothing that has room is taken while the policy says guard.dry_run.
const DryRun = "dry run: there is room, and nothing is taken"

// A Want is a step that waits for room.
type Want struct{ Node, Leaf, Reason, Step string }

// Would says of each want, in the order in which room is given, why it would not be taken at t if the guard were no dry run;
// "" for one that would be. Each that is taken leaves less room to those after it.
func (v View) Would(wants []Want, t time.Time) []string {
	v.policy.DryRun = false
	out := make([]string, len(wants))
	for i, w := range wants {
		ok, why := v.Room(w.Node, w.Leaf, w.Reason, w.Step, t)
		if out[i] = why; ok {
			v.books, _ = v.books.Spend(v.policy, v.census, Charge{Node: w.Node, Leaf: w.Leaf, Reason: w.Reason, Step: w.Step, At: t})
		}
	}
	return out
}

// A scope is one budget: whose charges it counts, over how long, and how its limit follows from a size.
type scope struct {
	name   string
	length time.Duration
	counts func(Entry) bool
	size   func(Entry) int // the size recorded with the window's oldest charge
	now    int             // the size now, for a window without charges
	share  float64
	most   int // absolute; 0: none
}

func (v View) scopes(leaf, reason string) []scope {
	fleet := func(e Entry) int { return e.Schedulable }
	s := []scope{
		{name: "fleet hour", length: hour, counts: all, size: fleet, now: v.census.Schedulable, share: v.policy.FleetHourShare, most: v.policy.FleetHourMax},
		{name: "fleet day", length: day, counts: all, size: fleet, now: v.census.Schedulable, share: v.policy.FleetDayShare},
	}
	if leaf != "" {
		s = append(s, scope{name: "leaf " + leaf + " hour", length: hour, counts: func(e Entry) bool { return e.Leaf == leaf },
			size: func(e Entry) int { return e.LeafSize }, now: v.census.Leaf[leaf], share: v.policy.LeafHourShare})
	}
	if reason != "" {
		s = append(s, scope{name: "reason " + reason + " hour", length: hour, counts: func(e Entry) bool { return e.Reason == reason },
			size: fleet, now: v.census.Schedulable, share: v.policy.ReasonShare})
	}
	return s
}

// state is the window that ends at t: the nodes charged in it, its limit by the size at its start, and when its oldest
// charge leaves it (zero without one). The window slides; a fixed one would let two budgets be spent across its edge.
func (v View) state(s scope, t time.Time) (nodes []string, limit int, until time.Time) {
	size := s.now
	nodes = nodesIn(v.books.Spent, t, s.length, s.counts)
	for _, e := range v.books.Spent {
		if within(e.At, t, s.length) && s.counts(e) {
			size, until = s.size(e), e.At.Add(s.length)
			break
		}
	}
	return nodes, Limit(s.share, s.most, size), until
}

// Limit is the budget in nodes: max(1, min(most, share × size)), rounded down; most 0 means no absolute bound.
func Limit(share float64, most, size int) int {
	// A share such as 0.02 is a hair off in binary: 0.02 × 150 must be 3.
	n := int(math.Floor(share*float64(size) + 1e-9))
	if most > 0 {
		n = min(n, most)
	}
	return max(1, n)
}

func contains(vs []string, v string) bool {
	for _, x := range vs {
		if x == v {
			return true
		}
	}
	return false
}
