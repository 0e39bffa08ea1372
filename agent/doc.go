// Package agent is the daemon on a GPU node: it reads the hardware in the background, judges what it read, tells the
// control plane, and answers the hooks that the workload manager runs.
//
// What it decides is in pure functions: Decide for hooks, Ledger for repeats, Window for incidents, Judge for suites,
// Deltas for epilogs. Around them Agent.Run is one goroutine that owns the state; everything that may take long (reading
// the hardware, talking to the control plane, a reset command) runs beside it and posts its result back.
//
// Validity is kept on the boot clock (CLOCK_BOOTTIME), never on the wall clock.
package agent
