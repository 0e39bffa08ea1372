package worker

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// turnEnv names the file by whose lock the children of one run take turns: each may verify copies beside the others, and
// measures a bandwidth alone, since GPUs share switches, links to the processor and its memory.
const turnEnv = "ASSAY_GOLDEN_TURN"

// A turn is that file. The zero value has nobody to take turns with.
type turn struct {
	f    *os.File
	wait time.Duration // for the others
}

// maxTurn is how long others' measurements may take: some 0.2 s for each GPU of a node.
const maxTurn = 10 * time.Second

// openTurn opens the file that the parent has made, if there is one.
func openTurn() turn {
	path := os.Getenv(turnEnv)
	if path == "" {
		return turn{}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return turn{} // by itself, then; the parent made it for this process
	}
	return turn{f, maxTurn}
}

func (t turn) close() {
	if t.f != nil {
		_ = t.f.Close()
	}
}

// with takes part beside others that do. It waits for one that measures, and no longer than it may.
func (t turn) with() (release func()) {
	release, _ = t.lock(syscall.LOCK_SH) // to copy while another measures harms only its figure
	return release
}

// alone waits until no other copies. The error says that it did not come to that.
func (t turn) alone() (release func(), err error) { return t.lock(syscall.LOCK_EX) }

func (t turn) lock(how int) (release func(), err error) {
	if t.f == nil {
		return func() {}, nil
	}
	fd := int(t.f.Fd())
	for end := time.Now().Add(t.wait); ; time.Sleep(time.Millisecond) {
		err := syscall.Flock(fd, how|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = syscall.Flock(fd, syscall.LOCK_UN) }, nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			return func() {}, fmt.Errorf("lock %s: %w", t.f.Name(), err)
		}
		if time.Now().After(end) {
			return func() {}, fmt.Errorf("other GPUs' copies did not end within %s", t.wait)
		}
	}
}
