package host

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A guard runs reads that may never come back: each in a goroutine of its own, never two of one name at a time.
type guard struct {
	mu      sync.Mutex
	flights map[string]time.Time // what has not come back, and when it set out
}

// A hungError says that a read has not come back.
type hungError struct {
	group string
	since time.Duration // ago
}

func (e *hungError) Error() string {
	return fmt.Sprintf("%s: not read within %s", e.group, e.since.Round(100*time.Millisecond))
}

// launch starts read unless one of that name is still away. The channel gives its value.
func launch[T any](g *guard, group string, read func() T) (<-chan T, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if since, away := g.flights[group]; away {
		return nil, &hungError{group, time.Since(since)}
	}
	if g.flights == nil {
		g.flights = map[string]time.Time{}
	}
	g.flights[group] = time.Now()
	back := make(chan T, 1)
	go func() {
		v := read()
		g.mu.Lock()
		delete(g.flights, group)
		g.mu.Unlock()
		back <- v
	}()
	return back, nil
}

// run runs read under the name and waits for it until ctx ends.
func run[T any](ctx context.Context, g *guard, group string, read func() T) (T, error) {
	var none T
	back, err := launch(g, group, read)
	if err != nil {
		return none, err
	}
	start := time.Now()
	select {
	case v := <-back:
		return v, nil
	case <-ctx.Done():
		select {
		case v := <-back:
			return v, nil
		default:
			return none, &hungError{group, time.Since(start)}
		}
	}
}
