package coordinator

import (
	"context"
	"net/http"
	"time"

	"github.com/assay-gpu/assay/coordinator/api"
)

// How long the key of a write is kept, and how many at the most: then the oldest goes. At about 150 bytes each they take
// less than a MiB of etcd.
const (
	oncesFor  = 24 * time.Hour
	oncesMost = 4096
)

// A once is a write that was done under a key.
type once struct {
	Sum string    `json:"sum"`           // of what was asked for
	Ref string    `json:"ref,omitempty"` // what its answer is found by
	At  time.Time `json:"at"`
}

// reusedError says that a key came with another write than before.
type reusedError struct{}

func (reusedError) Error() string {
	return "this Idempotency-Key came with another request before; nothing was done"
}
func (reusedError) Status() int  { return http.StatusUnprocessableEntity }
func (reusedError) Hint() string { return "make a new key for every new write" }

// do hands work to the apply loop and waits until it is durable. Work of a request with a key is done once: when the key
// has come before, do does nothing and the request counts as repeated.
func (l *lead) do(ctx context.Context, f func(*tx) error) error {
	o := api.OnceOf(ctx)
	if o == nil {
		return l.hand(ctx, f)
	}
	if _, again := api.Repeated(ctx); again {
		return nil
	}
	id, sum := o.ID(), o.Sum()
	var before *once // set in the apply loop, read when it has answered
	err := l.hand(ctx, func(t *tx) error {
		before = nil
		if k, ok := t.onceOf(id); ok && t.now.Sub(k.At) < oncesFor {
			if k.Sum != sum {
				return reusedError{}
			}
			before = &k
			return nil
		}
		if err := f(t); err != nil {
			return err
		}
		t.keepOnce(id, once{Sum: sum, Ref: t.ref, At: t.now})
		return nil
	})
	if err == nil && before != nil {
		o.Repeat(before.Ref)
	}
	return err
}

func (t *tx) onceOf(id string) (once, bool) {
	if k, ok := t.onces[id]; ok {
		if k == nil {
			return once{}, false
		}
		return *k, true
	}
	k, ok := t.base.onces[id]
	return k, ok
}

// keepOnce keeps a key. Where there are too many the oldest goes.
func (t *tx) keepOnce(id string, k once) {
	if len(t.base.onces)+len(t.onces) >= oncesMost {
		oldest := ""
		for id, k := range t.base.onces {
			if _, changed := t.onces[id]; !changed && (oldest == "" || k.At.Before(t.base.onces[oldest].At)) {
				oldest = id
			}
		}
		if oldest != "" {
			t.onces[oldest] = nil
		}
	}
	t.onces[id] = &k
}

// oldOnces lists keys that need not be kept, no more than one transaction takes.
func oldOnces(onces map[string]once, now time.Time) (old []string) {
	for id, k := range onces {
		if now.Sub(k.At) >= oncesFor && len(old) < releasesAtOnce {
			old = append(old, id)
		}
	}
	return old
}
