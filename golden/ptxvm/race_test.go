//go:build race

package ptxvm

// slow says that the tests run many times slower; the machine has no goroutine that the race detector could watch.
const slow = true
