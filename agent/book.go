package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// Outcomes of an effect, as the control plane reads them.
const (
	outcomeDone    = "done"
	outcomeFailed  = "failed"
	outcomeSkipped = "skipped"
)

// maxEffects bounds how many ended effects are remembered.
const maxEffects = 1000

// An effectRecord is what the agent knows of one effect. It is on disk before the effect begins.
type effectRecord struct {
	Effect wire.Effect        `json:"effect"`
	BootID string             `json:"boot_id"` // the boot it began in
	Result *wire.EffectResult `json:"result,omitempty"`
	Acked  bool               `json:"acked,omitempty"` // the control plane has the result
}

// An effectBook remembers effects, so that each is carried out once: over reconnects, restarts and reboots.
type effectBook struct {
	store  store
	bootID string
	work   chan struct{} // holds a token when there may be an effect to do
	result chan struct{} // holds a token when there may be a result to send

	mu      sync.Mutex
	wanted  []wire.Effect
	records []effectRecord // in the order they began
}

func openEffects(s store, bootID string) (*effectBook, error) {
	b := &effectBook{store: s, bootID: bootID, work: make(chan struct{}, 1), result: make(chan struct{}, 1)}
	s.load("effects.json", &b.records)
	token(b.result)
	return b, nil
}

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// want takes in the effects of a desired state. One that is still wanted though its result was sent gets it again: the
// control plane may have lost it, and a result told twice is harmless.
func (b *effectBook) want(es []wire.Effect) {
	b.mu.Lock()
	b.wanted = slices.Clone(es)
	for _, e := range es {
		if i := b.find(e.ID); i >= 0 && b.records[i].Acked {
			b.records[i].Acked = false
		}
	}
	b.mu.Unlock()
	token(b.work)
	token(b.result)
}

// begin returns the next effect that has no result yet and has it on disk that it began. resumed says that it began
// before, in boot startedIn: the agent ended before its result was known. An effect that cannot be put on disk is not begun.
func (b *effectBook) begin() (e wire.Effect, resumed bool, startedIn string, ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.wanted {
		i := b.find(e.ID)
		if i >= 0 && b.records[i].Result != nil {
			continue
		}
		if i >= 0 {
			return e, true, b.records[i].BootID, true, nil
		}
		b.records = append(b.records, effectRecord{Effect: e, BootID: b.bootID})
		if err := b.save(); err != nil {
			b.records = b.records[:len(b.records)-1]
			return e, false, "", false, fmt.Errorf("effect %s not begun: %w", e.ID, err)
		}
		return e, false, b.bootID, true, nil
	}
	return wire.Effect{}, false, "", false, nil
}

// end notes how an effect went. The result is kept in memory when the disk refuses it: after a restart the effect counts
// as begun and not ended.
func (b *effectBook) end(r wire.EffectResult) {
	b.mu.Lock()
	if i := b.find(r.ID); i >= 0 {
		b.records[i].Result = &r
	}
	b.trim()
	_ = b.save() // logged there
	b.mu.Unlock()
	token(b.result)
	token(b.work)
}

// unsent returns the oldest result the control plane has not got.
func (b *effectBook) unsent() (wire.EffectResult, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.records {
		if r.Result != nil && !r.Acked {
			return *r.Result, true
		}
	}
	return wire.EffectResult{}, false
}

func (b *effectBook) acked(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(id); i >= 0 {
		b.records[i].Acked = true
		_ = b.save() // logged there; a result sent twice is harmless
	}
}

func (b *effectBook) find(id string) int {
	return slices.IndexFunc(b.records, func(r effectRecord) bool { return r.Effect.ID == id })
}

// trim forgets the oldest effects that are over and no longer wanted.
func (b *effectBook) trim() {
	for i := 0; i < len(b.records) && len(b.records) > maxEffects; {
		r := b.records[i]
		wanted := slices.ContainsFunc(b.wanted, func(e wire.Effect) bool { return e.ID == r.Effect.ID })
		if r.Acked && !wanted {
			b.records = slices.Delete(b.records, i, i+1)
		} else {
			i++
		}
	}
}

func (b *effectBook) save() error { return b.store.save("effects.json", b.records) }

// NextResult waits for an effect's result that the control plane has not got.
func (a *Agent) NextResult(ctx context.Context) (wire.EffectResult, error) {
	for {
		if r, ok := a.effects.unsent(); ok {
			return r, nil
		}
		select {
		case <-a.effects.result:
		case <-ctx.Done():
			return wire.EffectResult{}, context.Cause(ctx)
		}
	}
}

// ResultSent notes that the control plane has the result of the effect with that id.
func (a *Agent) ResultSent(id string) { a.effects.acked(id) }
