// Package sim runs the scheduler on an accelerated clock: the same queue, backfill, preemption and placement that decide for
// a fleet, over a trace of jobs, with nodes that fail.
//
// The story in files: trace.go and one importer for each kind of log say which jobs come; generate.go makes jobs like those
// of five published clusters; cluster.go builds the fleet; faults.go says what breaks, and what a certificate would have
// caught; run.go is the clock; tally.go measures; bound.go says how well the gangs could have lain;
// report.go and html.go show, with the charts of package chart. All is pure: readers and writers are
// given, chance comes from a seed.
package sim
