package main

import (
	"strings"
	"syscall"
	"unsafe"
)

// Limits of what is read from the agent.
const (
	maxAnswer = 4 << 10         // bytes of answer kept; slurmd logs the message, so a screenful is plenty
	tail      = 1 * second      // how long the message may lag behind the first line
	agentName = "the agent on " // how messages name the other side
)

// An answer is what the agent said, or why there is none.
type answer struct {
	refused bool   // its first line was exactly "1"
	message string // for people; bounded, free of control characters
	err     string // why there is no answer; the other fields are then empty
}

// socketPath is the node's own socket or, where none of that name is there, the only agent's. Several slurmd may run
// on one host, each with an agent: a node's own socket that refuses is an agent that died, and no other may answer
// in its place.
func socketPath(dir, node string) string {
	own := dir + "/" + node + ".sock"
	if node == "" || node[0] == '.' || strings.ContainsAny(node, "/\x00") || len(own) >= maxSocketPath {
		return dir + "/agent.sock"
	}
	var st syscall.Stat_t
	if syscall.Stat(own, &st) == syscall.ENOENT {
		return dir + "/agent.sock"
	}
	return own
}

const maxSocketPath = 108 // sizeof sockaddr_un.sun_path, with its final zero

// ask sends req to the agent at path and reads its answer until the empty line that ends it, until the agent closes, or until
// deadline.
func ask(path string, req []byte, deadline int64) answer {
	fail := func(what string, err error) answer {
		why := reason(err)
		if err == syscall.EAGAIN || err == syscall.EINPROGRESS {
			why = "no answer in time"
		}
		return answer{err: what + agentName + path + ": " + why}
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail("cannot ask ", err)
	}
	defer syscall.Close(fd)
	if err := connect(fd, path, deadline); err != nil {
		return fail("cannot reach ", err)
	}
	for len(req) > 0 {
		if err := timeout(fd, syscall.SO_SNDTIMEO, deadline-now()); err != nil {
			return fail("cannot ask ", err)
		}
		n, err := send(fd, req)
		if err == syscall.EINTR || err == syscall.EAGAIN {
			continue
		}
		if err != nil {
			return fail("cannot ask ", err)
		}
		req = req[n:]
	}
	var buf [maxAnswer]byte
	n, status, known := 0, "", false
	if m := readSoon(fd, buf[:], deadline); m > 0 {
		n = m
		status, _, known = strings.Cut(string(buf[:n]), "\n")
	}
	for n < len(buf) && !(known && ended(buf[:n])) {
		if !known && n > 1 {
			break // a first line longer than one byte is none of ours
		}
		if known {
			deadline = min(deadline, now()+tail)
		}
		if err := timeout(fd, syscall.SO_RCVTIMEO, deadline-now()); err != nil {
			if known {
				break // the verdict is in; only its message is late
			}
			return fail("", err)
		}
		m, err := read(fd, buf[n:])
		if err == syscall.EINTR || err == syscall.EAGAIN {
			continue
		}
		if known && (err != nil || m == 0) {
			break
		}
		if err != nil {
			return fail("", err)
		}
		if m == 0 {
			return answer{err: agentName + path + " closed without an answer (" + quote(string(buf[:min(n, 64)])) + ")"}
		}
		n += m
		if !known {
			status, _, known = strings.Cut(string(buf[:n]), "\n")
		}
	}
	if status != "0" && status != "1" || !known {
		line, _, _ := strings.Cut(string(buf[:n]), "\n")
		return answer{err: agentName + path + " answered " + quote(line[:min(len(line), 64)]) + ", which is no answer"}
	}
	return answer{refused: status == "1", message: clean(string(buf[2:n]), maxAnswer)}
}

// ended reports whether an answer is whole: an empty line is its last.
func ended(b []byte) bool { return len(b) > 2 && b[len(b)-1] == '\n' && b[len(b)-2] == '\n' }

// soon is how long the hook looks for the answer without going to sleep. On the certificate's fast path the agent answers
// within it, and to be woken takes longer than to look; a core is lent meanwhile to whoever wants it.
const soon = 150 * microsecond

// readSoon reads what comes within a moment; 0 when nothing did, and the caller waits as for anything slow.
func readSoon(fd int, b []byte, deadline int64) int {
	for end := min(deadline, now()+soon); now() < end; {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), syscall.MSG_DONTWAIT, 0, 0)
		if errno == 0 {
			return int(n)
		}
		syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	}
	return 0
}

// read is syscall.Read without a word to the scheduler. Told that a call may block, the runtime hands this thread's work to
// another one and starts it, which takes longer than the agent's answer; here there is no other work. A preemption signal
// ends the call with EINTR, and the caller asks again.
func read(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// connect connects fd to path, waiting until deadline where the agent's queue is full.
func connect(fd int, path string, deadline int64) error {
	for {
		if err := timeout(fd, syscall.SO_SNDTIMEO, deadline-now()); err != nil {
			return err
		}
		switch err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err {
		case syscall.EINTR, syscall.EAGAIN:
		case syscall.EISCONN:
			return nil
		default:
			return err
		}
	}
}

// timeout sets how long the next call on fd may block: what is left, but a second at most, after which the caller asks
// again. The kernel may stretch such a timeout by an eighth, which of 19 s would be more than Slurm was promised.
// EAGAIN says that no time is left.
func timeout(fd, option int, left int64) error {
	if left <= 0 {
		return syscall.EAGAIN
	}
	tv := syscall.NsecToTimeval(min(max(left, microsecond), second)) // zero would be for ever
	return syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, option, &tv)
}
