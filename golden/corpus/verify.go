package corpus

import (
	"context"
	"fmt"
	"sync"

	"github.com/assay-gpu/assay/golden/ptxvm"
)

// A Fault is what is wrong with a program of a corpus.
type Fault struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// Verify holds each program to its grammar and finds its goldens anew, under so many hostile schedules. The files' digests
// were checked when it was loaded. The error says that ctx ended.
func (c *Corpus) Verify(ctx context.Context, schedules int, progress func(done int)) ([]Fault, error) {
	var mu sync.Mutex
	faults := map[string]string{}
	done := 0
	parallel(c.Manifest.Programs, func(p Program) {
		if ctx.Err() != nil {
			return
		}
		err := c.verify(p, schedules)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			faults[p.ID] = err.Error()
		}
		if done++; progress != nil {
			progress(done)
		}
	})
	var out []Fault
	for _, p := range c.Manifest.Programs {
		if why := faults[p.ID]; why != "" {
			out = append(out, Fault{p.ID, why})
		}
	}
	if ctx.Err() != nil {
		return out, fmt.Errorf("stopped after %d of %d programs: %w", done, len(c.Manifest.Programs), context.Cause(ctx))
	}
	return out, nil
}

func (c *Corpus) verify(p Program, schedules int) error {
	k, err := codeOf(p, c.entries[p.ID])
	if err != nil {
		return err
	}
	if err := k.look(c.Manifest.Shape); err != nil {
		return err
	}
	got, err := k.goldens(c.Manifest.Shape, schedules)
	if err != nil {
		return err
	}
	for seed, d := range got {
		if d.String() != p.Goldens[seed] {
			return fmt.Errorf("seed %d: the machine gives %s, the corpus says %s", seed, d, p.Goldens[seed])
		}
	}
	return nil
}

// Block gives what a block of a program ends with, from the PTX machine.
func (c *Corpus) Block(id string, seed uint64, threads, steps int) ([]uint32, error) {
	p, err := c.Lookup(id)
	if err != nil {
		return nil, err
	}
	m, err := ptxvm.Parse(head(p.Tier) + c.entries[p.ID])
	if err != nil {
		return nil, err
	}
	return plainRun(m.Entries[p.ID], 90, seed, threads, steps)
}
