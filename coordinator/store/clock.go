package store

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime reads CLOCK_BOOTTIME: it never jumps, and unlike Go's own monotonic clock it goes on while the machine
// sleeps. The result is a duration since the machine's boot dressed as a time, good only for comparing with another.
func bootTime() time.Time {
	var ts unix.Timespec
	// It cannot fail: the clock has existed since Linux 2.6.39 and the pointer is good.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return time.Unix(ts.Unix())
}
