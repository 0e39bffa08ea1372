// Package child runs another program within bounds: a deadline, so much output, a process group of its own that is ended as a
// whole, limits on memory and files, and another user if need be. What the program says is returned as it stands; what it
// means is for others.
package child

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/agent/tether"
)

// A Spec says what to run and within which bounds.
type Spec struct {
	Argv    []string
	Env     []string      // the whole environment, as NAME=value
	User    string        // name or number to run as; empty: as this process
	Timeout time.Duration // from start to SIGTERM
	Grace   time.Duration // from SIGTERM to SIGKILL
	Output  int           // most bytes of standard output; with one more it is ended
	Limits  *Limits       // nil: none
	Helper  []string      // the command, up to the arguments, that calls Become: it sets the limits, and keeps what Argv starts below itself
}

// An Outcome is how a run went.
type Outcome struct {
	Err      string         // it could not be run
	Missing  bool           // because there is no such program
	TimedOut bool           // it passed its deadline, or ctx ended, and was ended
	Broken   bool           // it was ctx that ended, before the deadline
	Cut      bool           // it printed more than it may, and was ended
	Stuck    bool           // it is there still, some time after SIGKILL
	Signal   syscall.Signal // the signal that ended it, when nothing above did
	Exit     int            // its exit status; -1 when there is none
	Stdout   []byte
	Stderr   string // its end, 512 bytes at most
	Pid      int    // of one that is stuck
}

// Times after which is given up waiting.
const (
	afterKill = 2 * time.Second        // from SIGKILL to Stuck
	afterExit = 500 * time.Millisecond // from the program's end to the end of what holds its output open
)

// Run runs the program and waits for its end, or for it to be past ending. It leaves no process of its group behind but one
// that SIGKILL does not end; with Limits and a Helper, none that the program or what it started has started, whatever group or
// session it has gone to.
func Run(ctx context.Context, s Spec) Outcome {
	if len(s.Argv) == 0 {
		return Outcome{Err: "no command", Exit: -1}
	}
	cred, err := credential(s.User)
	if err != nil {
		return Outcome{Err: err.Error(), Exit: -1}
	}
	argv, kept := s.Argv, s.Limits != nil && len(s.Helper) > 0
	if kept {
		argv = append(append(append([]string{}, s.Helper...), s.Limits.args()...), s.Argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = "/", s.Env, afterExit
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: cred}
	full := make(chan struct{}) // closed when it has printed too much
	out, errOut := &head{limit: s.Output, full: full}, &tail{}
	cmd.Stdout, cmd.Stderr = out, errOut
	proc, err := tether.Start(cmd, syscall.SIGKILL, nil) // how it went stands in ProcessState
	if err != nil {
		o := Outcome{Missing: errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound), Exit: -1}
		var e *os.PathError
		if errors.As(err, &e) {
			err = fmt.Errorf("%s: %w", argv[0], e.Err)
		}
		o.Err = err.Error()
		return o
	}
	var o Outcome
	deadline := time.NewTimer(s.Timeout)
	defer deadline.Stop()
	select {
	case <-proc.Done():
	case <-full:
		o.Cut = true
	case <-deadline.C:
		o.TimedOut = true
	case <-ctx.Done():
		o.TimedOut, o.Broken = true, true
	}
	o.Pid = end(cmd.Process.Pid, kept, proc.Done(), s.Grace)
	if o.Stuck = o.Pid != 0; o.Stuck {
		o.Exit = -1
	} else {
		o.Exit = cmd.ProcessState.ExitCode()
		if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() && !o.TimedOut && !o.Cut {
			o.Signal = w.Signal()
		}
		select { // it may have ended just after it printed too much
		case <-full:
			o.Cut = true
		default:
		}
	}
	o.Stdout, o.Stderr = out.bytes(), errOut.text()
	return o
}

// end ends what is left of the program's group and of what it started, softly at first if the program still runs, and gives a
// process that has not ended; 0 when all have. kept: pid is the keeper, below which all is that the program started.
func end(pid int, kept bool, waited <-chan struct{}, grace time.Duration) (left int) {
	select {
	case <-waited:
		_ = syscall.Kill(-pid, syscall.SIGKILL) // children it left behind; none is no matter
		return 0
	default:
	}
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	select {
	case <-waited:
	case <-time.After(grace):
	}
	if kept {
		left = endBelow(pid, waited)
	}
	others := tether.Below(pid) // as far as their parents live
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	for _, p := range others {
		_ = syscall.Kill(p, syscall.SIGKILL)
	}
	select {
	case <-waited:
		return left
	case <-time.After(afterKill):
		return pid
	}
}

// endBelow kills what is below the keeper, and gives a process that does not end; the keeper then ends by itself.
func endBelow(pid int, waited <-chan struct{}) (left int) {
	for until := time.Now().Add(afterKill); ; {
		if left = tether.KillBelow(pid); time.Now().After(until) {
			return left
		}
		select {
		case <-waited:
			return 0
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// credential gives the user's and the user's groups' numbers; nil for none other than ours.
func credential(name string) (*syscall.Credential, error) {
	if name == "" {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return nil, fmt.Errorf("run as %s: no such user", name)
		}
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("run as %s: %w", name, err)
	}
	if int(uid) == os.Geteuid() {
		return nil, nil
	}
	c := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("run as %s: %w", name, err)
	}
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			c.Groups = append(c.Groups, uint32(n))
		}
	}
	return c, nil
}

// head keeps the beginning of what is written to it, and says when there is more.
type head struct {
	limit int
	full  chan struct{}

	mu   sync.Mutex
	buf  []byte
	told bool
}

func (h *head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	room := h.limit - len(h.buf)
	h.buf = append(h.buf, b[:min(len(b), max(room, 0))]...)
	if len(b) > room && !h.told {
		h.told = true
		close(h.full)
	}
	return len(b), nil
}

func (h *head) bytes() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 512

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if len(t.buf) > tailBytes {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailBytes:]...)
	}
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
