//go:build !race

package main

// raceEnabled tells whether this is a run under the race detector. The stories that are left out there run in a second pass.
const raceEnabled = false
