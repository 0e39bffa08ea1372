package golden

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/golden/kernels"
)

// A Suite is an ordered choice of kernels.
type Suite struct {
	Name    string
	Does    string
	Kernels []string // IDs, in the order in which they find the most in a time that may be cut short
	Seeds   int      // seeds of each kernel in one run; they rotate from run to run
	Rounds  int      // times that the whole list is run
}

// Suites gives every suite. In each, the kernels that load all pipes at once come first, so that a cut-off loses the least.
func Suites() []Suite {
	return []Suite{
		{Name: "prolog", Does: "before a job: every kernel, one seed", Kernels: order(), Seeds: 1, Rounds: 1},
		{Name: "epilog", Does: "after a job, while the GPU is hot: every kernel, two seeds", Kernels: order(), Seeds: 2, Rounds: 1},
		{Name: "idle", Does: "beside no job, rotating: every kernel, one seed, in launches under 20 ms", Kernels: order(), Seeds: 1, Rounds: 1},
		{Name: "soak", Does: "in maintenance: every kernel, all seeds", Kernels: order(), Seeds: Seeds, Rounds: 1},
		{Name: "intake", Does: "a new or repaired GPU: every kernel, all seeds, twice", Kernels: order(), Seeds: Seeds, Rounds: 2},
	}
}

// order is tensor cores first (most area, most power), then the rest in the suite's order.
func order() []string {
	var first, rest []string
	for _, k := range kernels.All() {
		if strings.Contains(k.Probe, "mma") {
			first = append(first, k.ID)
		} else {
			rest = append(rest, k.ID)
		}
	}
	return append(first, rest...)
}

// LookupSuite gives a suite by its name.
func LookupSuite(name string) (Suite, error) {
	var names []string
	for _, s := range Suites() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Suite{}, fmt.Errorf("suite %q: want one of %s", name, strings.Join(names, ", "))
}
