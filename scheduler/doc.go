// Package scheduler places gangs: whole, close together, on certified nodes, or not at all and then with the reason.
//
// A Snapshot is the fleet at one moment: who is free, certified until when, reserved, running until when. A Fleet keeps
// one by events. Place reads a snapshot and a Gang and answers with a Plan; Fits checks a plan against a later snapshot
// with the same tests. Everything is pure: the same snapshot and gang give the same plan.
//
// Place goes through phases, one file each: ask.go turns the gang into tests of one node, count.go counts the nodes of
// each leaf that pass, search.go finds the lowest switches that hold enough and the best of them, leaves.go picks leaves,
// nodes.go nodes in a leaf, ranks.go GPUs in a node and their order; refuse.go explains when nothing fits.
package scheduler
