// Package queue says who goes next, and why the others wait.
//
// The story of a job, in the order of the files:
//
//	job.go         what is asked for, and the states from pending to done
//	config.go      partitions, QOS, weights: Slurm's configuration, checked as a whole
//	depend.go      what must have ended before
//	limits.go      what may be held at once, by QOS, user and account
//	priority.go    Slurm's multifactor sum
//	before.go      the one order, for admission and for preemption
//	eligible.go    hold, begin time, deadline, dependency, array throttle
//	queue.go       all jobs of a fleet: submit, start, end, order
//	contest.go     who may push whom out, and why that ends
//	several.go     a job that waits in several partitions
//	carry.go       what outlives the process: accepted and ended jobs, usage
//	door.go        who may submit, asked by whoever keeps the jobs
//	requeue.go     what a failed start or node does to a job, and when it may try again
//	reservation.go nodes kept for some, or from all, for a time
//	reason.go      why a job waits: Slurm's code, and one sentence with numbers
//
// Nothing here knows where nodes are: that is package scheduler. All is plain values without a clock: times are seconds
// since 1970, given by the caller.
package queue
