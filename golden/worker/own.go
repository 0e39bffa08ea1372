package worker

import (
	"context"
	"fmt"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ref"
)

// A Collection is programs that are not the suite's kernels and come with their own goldens, such as a corpus.
type Collection interface {
	// Kernels gives them in the order in which they are to run, and their size.
	Kernels() ([]kernels.Kernel, golden.Size)
	// Known gives the golden of one for a seed.
	Known(id string, seed int) (golden.Digest, error)
	// Block computes what a block ends with after steps steps.
	Block(id string, seed, steps int) ([]uint32, error)
}

// programs runs a collection, one seed of each.
func (t *tester) programs(ctx context.Context, o Options, r *golden.Result) error {
	list, size := o.Own.Kernels()
	t.own, t.size = o.Own, size
	if len(r.Stages) == 0 {
		r.Size = size.Name
	}
	for _, k := range list {
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("stopped: %w", cause)
		}
		s, err := t.stage(k, o.Seed%seedsOf(k))
		if t.host != "" {
			r.Blame = golden.BlameHost
		}
		if r.Add(s) {
			t.say(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// seedsOf is how many seeds of a kernel have goldens.
func seedsOf(k kernels.Kernel) int {
	if k.Seeds > 0 {
		return k.Seeds
	}
	return golden.Seeds
}

// known gives a kernel's golden.
func (t *tester) known(k kernels.Kernel, seed int) (golden.Digest, error) {
	if t.own != nil {
		return t.own.Known(k.ID, seed)
	}
	return golden.Known(k.ID, t.size, seed)
}

// block computes what a block of a kernel ends with.
func (t *tester) block(k kernels.Kernel, seed, steps int) ([]uint32, error) {
	if t.own != nil {
		return t.own.Block(k.ID, seed, steps)
	}
	return ref.Block(k.ID, uint64(seed), t.size.Threads, steps), nil
}
