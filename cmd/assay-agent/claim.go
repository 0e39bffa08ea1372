package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// claimWait is how long a folder may still be held by an agent that has just ended: a child it was starting has its files
// open for a moment.
const claimWait = time.Second

// An inUseError says that another agent runs on the same folder.
type inUseError struct{ what, dir string }

func (e *inUseError) Error() string {
	return fmt.Sprintf("%s %s: another agent runs on it", e.what, e.dir)
}

func (e *inUseError) Hint() string {
	return "one agent runs on a node; another, for a test, needs a --node, --run-dir and --state-dir of its own"
}

// claim takes a folder for this process alone until release is called or the process ends. It writes nothing there, so that
// a full or read-only disk does not matter.
func claim(what, dir string) (release func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	for end := time.Now().Add(claimWait); ; time.Sleep(50 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { f.Close() }, nil
		case errors.Is(err, syscall.EINTR):
		case !errors.Is(err, syscall.EWOULDBLOCK):
			f.Close()
			return nil, fmt.Errorf("%s %s: lock: %w", what, dir, err)
		case time.Now().After(end):
			f.Close()
			return nil, &exitError{exitFault, &inUseError{what, dir}}
		}
	}
}
