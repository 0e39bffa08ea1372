package worker

import (
	"context"
	"time"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/explain"
)

// explainTime bounds the search for a stuck bit, which is CPU time of the node.
const explainTime = 5 * time.Second

// bisect runs with fewer and fewer steps until the first wrong one is known, and looks at that: its operands, the lane, and
// which bit of which unit would have made it so. A full run has a power of two of steps, so the states that are compared are
// those after every 2^k steps, k falling.
func (t *tester) bisect(l *layout, sm *golden.SM, seed int) error {
	var got []uint32 // the block's words that were compared last
	at := func(steps int) (*golden.Mismatch, error) {
		o, err := t.cover(l, seed, steps, noCanary)
		if err != nil {
			return nil, err
		}
		for _, b := range o.blocks {
			if b.slot == sm.SM && b.end == b.slot {
				got = b.words
				want, err := t.block(l.k, seed, steps)
				if err != nil {
					return nil, err
				}
				return golden.Compare(b.words, want, t.size.Threads), nil
			}
		}
		return nil, nil
	}
	n, err := golden.FirstWrong(t.size.Steps(l.k), func(steps int) (bool, error) {
		m, err := at(steps)
		return m != nil, err
	})
	if err != nil {
		return err
	}
	m, err := at(n)
	if err != nil || m == nil {
		return err // gone again: not localised
	}
	w := golden.Locate(m, n)
	before, err := t.block(l.k, seed, n-1)
	if err != nil {
		return err
	}
	for i := w.Thread; i < len(before); i += t.size.Threads {
		w.Operands = append(w.Operands, before[i])
	}
	sm.Mismatch.Where = w
	if t.own != nil {
		return nil // what explains a wrong step knows the suite's kernels
	}
	ctx, cancel := context.WithTimeout(context.Background(), explainTime)
	defer cancel()
	// An error is of the search's time, or of its machine: then nothing explains it.
	w.Stuck, _ = explain.Explain(ctx, explain.Question{Kernel: l.k.ID, Size: t.size, Seed: seed, Steps: n, Capability: t.gpu.Capability, Got: got})
	return nil
}
