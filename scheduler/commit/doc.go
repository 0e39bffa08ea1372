// Package commit is what becomes of a plan: a launch, from reserved nodes to the last process gone.
//
//	reserved ── every node ready ──► going ── every rank ended well ──► over
//	    └── a node refused, or time ──┐   └── a rank failed, a node went, time, cancelled ──┐
//	                                  └─────────────────────► ending ── nothing runs ──► over
//
// No user code runs before every node of the gang has said it is ready; a node that does not say so in time ends the launch
// everywhere. The launch is one key in the store; what its nodes said is kept in memory, since agents say it again to
// whoever leads.
package commit
