// Package launch runs this node's part of gangs: it checks the node again when nodes are reserved, waits at the barrier for
// GO, starts one process for each rank, and ends them all when the control plane says so or the reservation is too old.
//
// A launch that this process has not checked is never started: after the agent was started anew, GO is answered with the
// loss of the ranks. Ranks die with the agent (package tether), so that none runs on unwatched.
package launch
