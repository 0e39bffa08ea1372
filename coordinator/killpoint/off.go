//go:build !killpoint

// Package killpoint names the moments between two steps at which the process could die. In a build with the tag
// killpoint a test can make it die there; in any other build the calls are empty.
package killpoint

// Here marks a moment, as "drain/before".
func Here(string) {}
