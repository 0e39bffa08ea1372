// Package cycle is one round of decisions: queue, backfill and preemption put together.
//
// A round takes the queue and the fleet as they are and says who starts where and who is pushed out for whom. It changes
// neither of them but for the reasons why jobs wait, and the fleet's reservations, which a Replan brings up to date: the caller carries out what was decided, in the control plane by the
// apply loop, in the simulator at once. A Replan orders the queue anew and plans from nothing; an Event round keeps order and
// plan, and costs little.
package cycle
