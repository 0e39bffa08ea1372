package queue

import "slices"

// A Reservation keeps nodes for some jobs, or from all, for a time. A hold of the coordinator and a maintenance window are
// reservations that admit nobody. What runs when it begins goes on. Slurm's flags FLEX and MAGNETIC are not known.
type Reservation struct {
	Name       string
	Start, End int64
	Repeat     int64   // seconds from one start to the next: a day or a week; 0: once
	Nodes      []int32 // by the snapshot's index, sorted
	Users      []string
	Accounts   []string
	Maint      bool // for maintenance: runs no job of its own
}

// Admits reports whether j may run on the reservation's nodes while it lasts.
func (r *Reservation) Admits(j *Job) bool {
	if r.Maint || j.Reservation != r.Name {
		return false
	}
	return slices.Contains(r.Users, j.User) || slices.Contains(r.Accounts, j.Account)
}

// A Window is a time from Start to End, End not included.
type Window struct{ Start, End int64 }

// Windows are the times of r that touch [from, to), in order.
func (r *Reservation) Windows(from, to int64) []Window {
	w := Window{r.Start, r.End}
	if r.Repeat <= 0 {
		if w.End > from && w.Start < to {
			return []Window{w}
		}
		return nil
	}
	if behind := from - w.End; behind >= 0 {
		n := behind/r.Repeat + 1
		w.Start, w.End = w.Start+n*r.Repeat, w.End+n*r.Repeat
	}
	var all []Window
	for ; w.Start < to; w.Start, w.End = w.Start+r.Repeat, w.End+r.Repeat {
		all = append(all, w)
	}
	return all
}

// over reports whether r will not come again.
func (r *Reservation) over(now int64) bool { return r.Repeat <= 0 && now >= r.End }

func (q *Queue) reservation(name string) *Reservation {
	for i := range q.reservations {
		if q.reservations[i].Name == name {
			return &q.reservations[i]
		}
	}
	return nil
}

// SetReservations replaces all reservations.
func (q *Queue) SetReservations(rs []Reservation) { q.reservations = slices.Clone(rs) }

// Reservations are those that were set.
func (q *Queue) Reservations() []Reservation { return q.reservations }
