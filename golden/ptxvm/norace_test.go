//go:build !race

package ptxvm

const slow = false
