package queue

// A Door says who may submit a job, without knowing who runs where. It counts jobs only, so that whoever takes them in can
// ask it before they are kept.
type Door struct{ q *Queue }

// NewDoor is a door by the rules of an empty queue, which it then owns.
func NewDoor(q *Queue) *Door { return &Door{q} }

// Limited reports whether anything limits how many jobs are submitted: if not, nobody needs to Count.
func (d *Door) Limited() bool {
	limited := func(l *Limits) bool { return l.GrpSubmit >= 0 || l.MaxSubmit >= 0 || l.MaxSubmitPerAccount >= 0 }
	for i := range d.q.cfg.QOS {
		if limited(&d.q.cfg.QOS[i].Limits) {
			return true
		}
	}
	for _, l := range d.q.budget.limits {
		if l != nil && limited(l) {
			return true
		}
	}
	return false
}

// Refuse is why j may not be submitted; no reason when it may.
func (d *Door) Refuse(j Job) Reason { return d.q.refuse(&j) }

// Count notes that a job came (1) or ended (-1).
func (d *Door) Count(j Job, n int) {
	if err := d.q.place(&j); err == nil {
		d.q.budget.submitted(&j, n)
	}
}

// SetReservations replaces all reservations.
func (d *Door) SetReservations(rs []Reservation) { d.q.SetReservations(rs) }
