package main

import (
	"strings"
	"syscall"
	"unsafe"
)

// Durations in nanoseconds of the monotonic clock.
const (
	microsecond = 1_000
	second      = 1_000_000_000
)

// now reads the monotonic clock, in nanoseconds: no step of the wall clock shortens or stretches a budget.
func now() int64 {
	var ts syscall.Timespec
	const clockMonotonic = 1
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// arguments reads the program's own arguments from /proc: package os, which has them, costs too much at start.
func arguments() []string {
	data, _, err := readFile("/proc/self/cmdline", 64<<10)
	if err != nil || len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
}

func environment() []string { return syscall.Environ() }

func getenv(name string) string {
	value, _ := syscall.Getenv(name)
	return value
}

// readFile reads at most limit bytes of a file, and never blocks on a pipe that stands in its place.
func readFile(path string, limit int) ([]byte, syscall.Stat_t, error) {
	var st syscall.Stat_t
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, st, err
	}
	defer syscall.Close(fd)
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, st, err
	}
	var data []byte
	buf := make([]byte, min(limit, 4<<10))
	for len(data) < limit {
		n, err := syscall.Read(fd, buf[:min(len(buf), limit-len(data))])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return nil, st, err
		}
		if n == 0 {
			break
		}
		data = append(data, buf[:n]...)
	}
	return data, st, nil
}

// send is send(2) without SIGPIPE.
func send(fd int, p []byte) (int, error) {
	n, _, errno := syscall.Syscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), syscall.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// say writes one message to stderr, which slurmd logs. It is one write of less than a pipe's guaranteed atomic size.
func say(message string) { write(2, "assay: "+clean(message, maxAnswer-len("assay: ")-1)+"\n") }

// write writes s to fd if that is possible without waiting: a hook whose output nobody reads must end all the same.
func write(fd int, s string) {
	for len(s) > 0 {
		if !writable(fd) {
			return
		}
		n, err := syscall.Write(fd, []byte(s[:min(len(s), 4<<10)])) // PIPE_BUF: never blocks after poll says yes
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		s = s[n:]
	}
}

// ready waits until fd can be read or has ended.
func ready(fd int, deadline int64) bool { return poll(fd, pollIn, deadline)&(pollIn|pollHup) != 0 }

// writable waits up to a second until fd takes bytes.
func writable(fd int) bool { return poll(fd, pollOut, now()+second)&pollOut != 0 }

const (
	pollIn  = 1
	pollOut = 4
	pollHup = 16
)

// poll is ppoll(2) for one file; 0 when nothing came about before deadline.
func poll(fd int, events int16, deadline int64) int16 {
	p := struct {
		fd              int32
		events, revents int16
	}{int32(fd), events, 0}
	for {
		ts := syscall.NsecToTimespec(max(deadline-now(), 0))
		_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		if errno != syscall.EINTR {
			return p.revents
		}
	}
}

// clean returns at most limit bytes of s on one line: line ends become "; ", other control bytes go, bytes that are
// not UTF-8 become '?'.
func clean(s string, limit int) string {
	s = strings.ToValidUTF8(strings.TrimSpace(s), "?")
	var b strings.Builder
	for _, r := range s {
		out := string(r)
		switch {
		case r == '\n':
			out = "; "
		case r == '\t':
			out = " "
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			continue
		}
		if b.Len()+len(out) > limit {
			break
		}
		b.WriteString(out)
	}
	return b.String()
}

// quote puts s, made harmless, in quotation marks.
func quote(s string) string { return `"` + clean(s, 256) + `"` }

// reason says in words why a call failed.
func reason(err error) string {
	switch err {
	case syscall.ENOENT:
		return "it is not there"
	case syscall.ECONNREFUSED:
		return "nobody listens"
	}
	return err.Error()
}
