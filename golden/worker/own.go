package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ref"
)

// A Collection is programs that are not the suite's kernels and come with their own goldens, such as a corpus.
type Collection interface {
	// Kernels gives them in the order in which they are to run, and their size.
	Kernels() ([]kernels.Kernel, golden.Size)
	// Version names them all together.
	Version() string
	// Known gives the golden of one for a seed.
	Known(id string, seed int) (golden.Digest, error)
	// Block computes what a block ends with after steps steps.
	Block(id string, seed, steps int) ([]uint32, error)
}

// programs runs a collection, one seed of each, and leaves out what most of the time given is gone for: the next day begins at
// another program.
func (t *tester) programs(ctx context.Context, o Options, r *golden.Result, passed func() time.Duration) error {
	list, size := o.Own.Kernels()
	r.Corpus = o.Own.Version()
	t.own, t.size = o.Own, size
	if len(r.Stages) == 0 {
		r.Size = size.Name
	}
	for _, k := range list {
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("stopped: %w", cause)
		}
		if o.Within > 0 && passed() > o.Within-o.Within/programShare {
			r.Left++
			continue
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

// programShare of the time given is left for the end of a run when no further program is begun.
const programShare = 8

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
