// Package rules is what a site says about who may have how much of its fleet: partitions, QOS, the tree of accounts,
// reservations and the weights of priority, in the words of Slurm's slurm.conf and sacctmgr.
//
//	text.go        times, amounts and shares as people write them
//	limits.go      what a QOS, an account or a user may have at once
//	records.go     an account, a QOS, a partition, a reservation, the priority's weights
//	book.go        all of them together, checked as a whole
//	config.go      the book as package queue and package quota read it
//	reserve.go     reservations as windows of time on nodes
//	complete.go    what a job that names no partition, QOS or account means, and whether its user may
//
// A Book is plain data: it is what the control plane keeps, one key a record, and what `assay account load` reads.
package rules
