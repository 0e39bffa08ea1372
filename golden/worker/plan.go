package worker

import (
	"slices"
	"time"

	"github.com/assay-gpu/assay/golden"
)

// order is what is to run: the suite's kernels and then its copies, or those of them that are asked for; kernels that once
// caught a device come first.
func (o Options) order() []string {
	ids := slices.Concat(o.Suite.Kernels, o.Suite.Copies)
	if o.Kernels != nil {
		ids = o.Kernels
	}
	first := slices.DeleteFunc(slices.Clone(o.First), func(id string) bool { return !slices.Contains(ids, id) })
	return append(first, slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(first, id) })...)
}

// Links reports whether links to other GPUs are tested, so that the process must see those.
func (o Options) Links() bool {
	return slices.ContainsFunc(o.order(), func(id string) bool { c, _ := golden.LookupCopy(id); return c.Links })
}

// plan gives kernels and seeds in the order in which they are to run, until yield says stop. passed is the time since the
// process started.
//
// Where the suite has a hot share, the kernels that load all pipes run first, with one seed after the other, until that share
// of the time is gone: heat is part of the test, and what is cut off at the end is what finds the least. A simulated GPU has
// no heat, and its time is dear: there each runs once. A suite that is to last goes round until then.
func (o Options) plan(passed func() time.Duration, yield func(kernel string, seed int) bool) {
	ids := o.order()
	hot := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(o.Suite.Hot, id) })
	heat := time.Duration(o.Suite.HotShare * float64(o.Within))
	if o.Size.Name == golden.Reduced.Name {
		heat = 0
	}
	seed := func(n int) int { return (o.Seed + n) % golden.Seeds }
	for round := 0; round < max(o.Suite.Rounds, 1) || passed() < o.For; round++ {
		for n := range max(o.Suite.Seeds, 1) {
			n += round * max(o.Suite.Seeds, 1)
			left := len(hot)
			for _, id := range ids {
				if !yield(id, seed(n)) {
					return
				}
				if slices.Contains(hot, id) {
					left--
				}
				for more := n + 1; left == 0 && len(hot) > 0 && passed() < heat; more++ {
					for _, id := range hot {
						if !yield(id, seed(more)) {
							return
						}
					}
				}
			}
		}
	}
}
