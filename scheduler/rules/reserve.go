package rules

import (
	"slices"

	"github.com/assay-gpu/assay/scheduler/queue"
)

var repeats = map[string]int64{"": 0, "daily": 24 * 3600, "weekly": 7 * 24 * 3600}

func (r *Reservation) faults(bad func(string, ...any)) {
	if _, err := nodeNames(r.Nodes); err != nil {
		bad("nodes: %v", err)
	}
	every, ok := repeats[r.Repeat]
	switch {
	case !ok:
		bad("repeat %q: want daily or weekly, or leave it out", r.Repeat)
	case r.Start.IsZero():
		bad("it needs a start, as 2026-12-24T08:00:00Z")
	case r.Duration <= 0:
		bad("it needs a duration, as 4h")
	case every > 0 && int64(r.Duration) >= every:
		bad("it lasts %s and begins again before it has ended", r.Duration)
	case r.Maint && len(r.Users)+len(r.Accounts) > 0:
		bad("maintenance is for nobody's jobs: leave out users and accounts")
	case !r.Maint && len(r.Users)+len(r.Accounts) == 0:
		bad("for whom? Name users or accounts, or say maint")
	}
}

// Over reports whether r will not come again after the second now.
func (r *Reservation) Over(now int64) bool {
	return repeats[r.Repeat] == 0 && now >= r.Start.Unix()+int64(r.Duration)
}

// Nodes are the nodes of r, by the number that index gives each; all of the fleet's for a reservation of all. Those that
// index does not know are left out.
func (r *Reservation) nodes(all int, index func(string) (int32, bool)) []int32 {
	names, _ := nodeNames(r.Nodes) // checked
	var out []int32
	if names == nil {
		for i := range all {
			out = append(out, int32(i))
		}
		return out
	}
	for _, n := range names {
		if i, ok := index(n); ok {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Reserve is the reservations of the book as package queue has them, over a fleet of all nodes that index numbers.
func (b Book) Reserve(all int, index func(string) (int32, bool)) []queue.Reservation {
	var out []queue.Reservation
	for _, r := range sorted(b.Reservations) {
		start := r.Start.Unix()
		out = append(out, queue.Reservation{Name: r.Name, Start: start, End: start + int64(r.Duration), Repeat: repeats[r.Repeat],
			Nodes: r.nodes(all, index), Users: r.Users, Accounts: b.below(r.Accounts), Maint: r.Maint})
	}
	return out
}

// Within is the nodes of a partition by their number; nil for all.
func (b Book) Within(partition string, index func(string) (int32, bool)) []int32 {
	names, _ := nodeNames(b.Partitions[partition].Nodes)
	if names == nil {
		return nil
	}
	out := []int32{}
	for _, n := range names {
		if i, ok := index(n); ok {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
