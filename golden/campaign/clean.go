package campaign

import (
	"fmt"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

// A CleanRun is the suite once on a device without a fault.
type CleanRun struct {
	Blocks  int    // whose words were compared
	Skipped int    // that another SM's claim or a moved block left without attribution
	Wrong   string // the first false positive or trap, empty when there is none
}

// Clean runs the suite on a device without faults whose scheduling is hostile: random order of SMs, blocks and warps, late
// stores, a %smid that may change, and the race detector on. Goldens are of a seed that the run's seed gives.
func (r *Runner) Clean(seed uint64) (CleanRun, error) {
	var c CleanRun
	one := &Runner{o: r.o, entries: r.entries}
	one.o.Seed = int(seed % golden.Seeds)
	d := ptxvm.NewDevice(ptxvm.Config{SMs: r.o.SMs, Capability: r.o.Capability, Seed: seed, SharedSM: 16 << 10, Budget: 1 << 24, Hostile: true, Races: true, MoveSM: true,
		Env: []ptxvm.Env{cold, hot}[seed%2]})
	for i, id := range r.o.Kernels {
		k, _ := kernels.Lookup(id)
		if k.Skip(r.o.Capability) != "" {
			continue
		}
		want, err := golden.Known(id, r.o.Size, one.o.Seed)
		if err != nil {
			return c, err
		}
		out, err := one.launch(d, k, uint32(seed)<<8|uint32(i+1), r.o.Size.Steps(k))
		if err != nil {
			c.Wrong = fmt.Sprintf("seed %d: %s: %v", seed, id, err)
			return c, nil
		}
		for slot, words := range out {
			switch {
			case words == nil:
				c.Skipped++
			case golden.DigestOf(words) != want:
				c.Wrong = fmt.Sprintf("seed %d: %s: SM %d: not the golden", seed, id, slot)
				return c, nil
			default:
				c.Blocks++
			}
		}
	}
	return c, nil
}
