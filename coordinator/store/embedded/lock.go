package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockWait is how long a start waits for a predecessor that is still stopping.
const lockWait = 3 * time.Second

// A LockedError says that another process runs on the data directory.
type LockedError struct{ Dir string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("etcd in %s: another process has the directory", e.Dir)
}
func (e *LockedError) Hint() string {
	return "is another assayd running? Stop it, or give this one a state directory of its own"
}

// lockDir takes the lock on the directory, which the kernel drops when the process ends, however it ends. etcd would
// wait for its own lock without end and without a word.
func lockDir(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("etcd lock: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("etcd lock %s: %w", f.Name(), err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, &LockedError{dir}
		case <-time.After(50 * time.Millisecond):
		}
	}
}
