package faults

import (
	"context"
	"time"
)

// lateTimeout bounds a late call, which has no caller any more.
const lateTimeout = 5 * time.Second

// call makes one counted call, or fails it. Calls of one injector are made one at a time, so their numbers mean the
// same in every run.
func (i *Injector) call(ctx context.Context, name string, do func(context.Context) error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls++
	i.names = append(i.names, name)
	if i.late != nil && i.calls >= i.lateAt {
		i.applyLate()
	}
	if i.down {
		return &Error{i.calls, name, NotApplied}
	}
	if i.calls != i.fail {
		return do(ctx)
	}
	i.fired = true
	i.down = i.Crash
	fault := &Error{i.calls, name, i.mode}
	switch i.mode {
	case AppliedError:
		if err := do(ctx); err != nil {
			return err // etcd failed it by itself
		}
	case AppliedLate:
		i.late = func() {
			ctx, cancel := context.WithTimeout(context.Background(), lateTimeout)
			defer cancel()
			i.lateErr = do(ctx)
		}
		i.lateAt = i.calls + max(i.Later, 1)
	}
	return fault
}

func (i *Injector) applyLate() {
	if i.late != nil {
		i.late()
		i.late = nil
	}
}
