package lifecycle

// retired: not under our care any more. Only a new enrolment changes that; reports and Slurm's news are nobody's.
func (s *step) retired(ev Event) error {
	switch ev.(type) {
	case OrderDrain, OrderResume, OrderCancel, OrderHold, OrderUnhold, OrderRMA, OrderRepaired, OrderCase:
		return s.illegal(ev, "assay does not manage it any more", "enrol it: assay node enroll "+s.Name)
	}
	return nil
}
