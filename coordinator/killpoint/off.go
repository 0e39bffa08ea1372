//go:build !killpoint

// Package killpoint names the moments between two steps at which the process could die. In a build with the tag
// killpoint a test can make it die there; in any other build the calls are empty.
package killpoint

// Enabled says whether this build can die at its moments, for callers whose names take work to make.
const Enabled = false

// Here marks a moment, as "drain/before".
func Here(string) {}
