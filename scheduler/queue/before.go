package queue

import "cmp"

// A Key is where a job stands in the order. It is frozen between two plans.
type Key struct {
	Expedited bool   // lost a node, and waits for another
	Rank      int    // above all whom it may preempt
	Borrows   bool   // would hold more than its accounts own
	Reserved  bool   // has a reservation
	Tier      int    // of its partition
	Priority  uint32 // multifactor
	Submit    int64
	ID        int64
}

// Before reports whether a goes before b. There is one order, for who starts first and for who may push whom out, so that
// no job can be started ahead of one that would push it out again (kueue 3779, 2821).
//
// It is Slurm's: expedited requeue, who may preempt the other, reservation, partition tier, priority, submit time, id. Slurm
// asks for each pair whether one may preempt the other, which is no order when three disagree; here a rank says it, and a
// QOS has a higher rank than all it may preempt. Jobs within what their accounts own go before those that borrow.
func Before(a, b Key) bool { return compareKeys(a, b) < 0 }

func compareKeys(a, b Key) int {
	return cmp.Or(
		first(a.Expedited, b.Expedited),
		cmp.Compare(b.Rank, a.Rank),
		first(b.Borrows, a.Borrows),
		first(a.Reserved, b.Reserved),
		cmp.Compare(b.Tier, a.Tier),
		cmp.Compare(b.Priority, a.Priority),
		cmp.Compare(a.Submit, b.Submit),
		cmp.Compare(a.ID, b.ID),
	)
}

// first orders what is true before what is not.
func first(a, b bool) int {
	switch {
	case a && !b:
		return -1
	case b && !a:
		return 1
	}
	return 0
}
