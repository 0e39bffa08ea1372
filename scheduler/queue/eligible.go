package queue

import "fmt"

// ineligible is why j may not even be considered now; no reason when it may. Limits come later: they depend on who starts
// before it.
func (q *Queue) ineligible(j *Job, now int64) Reason {
	switch {
	case j.HeldAdmin && j.Why.Code == JobHoldMaxRequeue, j.HeldAdmin && j.Why.Code == JobLaunchFailure:
		return j.Why
	case j.HeldAdmin:
		return Reason{JobHeldAdmin, "held by an operator; assay job release frees it"}
	case j.HeldUser:
		return Reason{JobHeldUser, "held by its user; assay job release frees it"}
	case j.Begin > now:
		return Reason{BeginTime, fmt.Sprintf("begins in %s, as asked", span(j.Begin-now))}
	case j.NotBefore > now:
		return Reason{BeginTime, fmt.Sprintf("failed to start %s, last on %s; tried again in %s", times(j.Attempts), orNone(j.lastBad()), span(j.NotBefore-now))}
	}
	if p := q.jobs[j.Behind]; p != nil && p.State == Pending {
		return Reason{ReservedForPreemptor, fmt.Sprintf("made room for job %d, which has not started yet", p.ID)}
	}
	switch o, text := q.stands(j, now); o {
	case waits:
		return Reason{DependencyReason, text}
	case never:
		return Reason{DependencyNeverSatisfied, text}
	}
	if j.Reservation != "" {
		r := q.reservation(j.Reservation)
		switch {
		case r == nil:
			return Reason{ReservationDeleted, fmt.Sprintf("reservation %s was deleted", j.Reservation)}
		case r.over(now):
			return Reason{ReservationReason, fmt.Sprintf("reservation %s ended %s ago", r.Name, span(now-r.End))}
		}
	}
	if j.Throttle > 0 {
		if n := q.tasksRunning[j.Array]; n >= j.Throttle {
			return Reason{JobArrayTaskLimit, fmt.Sprintf("array %d runs %d tasks at once and runs %d", j.Array, j.Throttle, n)}
		}
	}
	return Reason{}
}

// NextChange is the next second at which some waiting job may be considered that may not be now; ok is false when time
// alone changes nothing.
func (q *Queue) NextChange(now int64) (at int64, ok bool) {
	for _, id := range q.pending {
		j := q.jobs[id]
		times := []int64{j.Begin, j.NotBefore}
		for _, d := range j.After.List {
			if o := q.jobs[d.Job]; o != nil && d.Delay > 0 && o.Starts > 0 {
				times = append(times, o.Start+d.Delay)
			}
		}
		for _, t := range times {
			if t > now && (!ok || t < at) {
				at, ok = t, true
			}
		}
	}
	return at, ok
}

// late reports whether j can no longer end by its deadline.
func (q *Queue) late(j *Job, now int64) bool {
	return j.Deadline > 0 && now+q.cfg.partition(j.Partition).limit(j) > j.Deadline
}

// age lets j's age begin to count, or end to: it counts while nothing but resources and limits keeps it waiting, and, with
// MaxAccrue, for so many of a user's jobs only.
func (q *Queue) age(j *Job, eligible bool, now int64) {
	if q.cfg.Flags.AccrueAlways {
		j.Accrue = max(1, j.Submit)
		return
	}
	switch {
	case !eligible && j.Accrue > 0:
		j.Accrue = 0
		q.budget.change(j, func(s *scope) { s.accruing-- })
	case eligible && j.Accrue == 0:
		for _, p := range q.budget.places(j) {
			if m := p.Limits.MaxAccrue; m >= 0 {
				if q.budget.qos[scopeKey{qos: p.Name, user: j.User}].accruing >= m {
					return
				}
				break
			}
		}
		j.Accrue = max(1, now)
		q.budget.change(j, func(s *scope) { s.accruing++ })
	}
}
