// Package launch runs this node's part of gangs: it checks the node again when nodes are reserved, waits at the barrier for
// GO, starts one process for each rank, and ends them all when the control plane says so or the reservation is too old.
//
// A launch that this process has not checked is never started: after the agent was started anew, GO is answered with the
// loss of the ranks. Nothing that a rank starts outlives it, or the agent: a keeper above each rank holds all of it, whatever
// sessions it makes, and ends it at the rank's end and at the agent's. Where a keeper itself was killed, what it held is found
// by the mark in its environment, and killed before anything is said of its end.
package launch
