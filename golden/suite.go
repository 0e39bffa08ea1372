package golden

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/golden/kernels"
)

// A Suite is an ordered choice of kernels.
type Suite struct {
	Name    string
	Does    string
	Kernels []string // IDs, in the order in which they find the most in a time that may be cut short
	Copies  []string // tests of copies, after the kernels: those of the links last
	Seeds   int      // seeds of each kernel in one run; they rotate from run to run
	Rounds  int      // times that the whole list is run

	Hot      []string      // those of Kernels that load all pipes at once
	HotShare float64       // of the time given, in which they run again and again before the rest does
	Launch   time.Duration // the longest that one launch may take; 0: any
	Bytes    int           // the most device memory that one kernel may hold; 0: any
}

// Suites gives every suite. In each, the kernels that load all pipes at once come first, so that a cut-off loses the least.
func Suites() []Suite {
	all, hot := order()
	quick, quickHot := slices.DeleteFunc(slices.Clone(all), isLater), slices.DeleteFunc(slices.Clone(hot), isLater)
	suites := []Suite{
		{Name: "prolog", Does: "before a job: the kernels that find the most in a short time, one seed, and copies; those that load all pipes until half the time is gone", Seeds: 1, Rounds: 1, HotShare: 0.5},
		{Name: "epilog", Does: "after a job, while the GPU is hot: the same kernels, two seeds, and copies; likewise", Seeds: 2, Rounds: 1, HotShare: 0.5},
		{Name: "idle", Does: "beside no job, rotating: every kernel, one seed, and copies, in launches of 20 ms at most", Seeds: 1, Rounds: 1, Launch: 20 * time.Millisecond, Bytes: 2 << 30},
		{Name: "soak", Does: "in maintenance: every kernel, all seeds, copies, and the links between GPUs, for as long as it is told to", Seeds: Seeds, Rounds: 1},
		{Name: "intake", Does: "a new or repaired GPU: every kernel, all seeds, copies, and the links between GPUs, twice", Seeds: Seeds, Rounds: 2},
	}
	for i := range suites {
		suites[i].Kernels, suites[i].Hot = all, hot
		if suites[i].HotShare > 0 { // somebody waits for the end
			suites[i].Kernels, suites[i].Hot = quick, quickHot
		}
		suites[i].Copies = copyIDs(suites[i].Seeds == Seeds)
	}
	return suites
}

// order is tensor cores first (most area, most power), then the rest in the suite's order. hot are the first.
func order() (all, hot []string) {
	var rest []string
	for _, k := range kernels.All() {
		if strings.Contains(k.Probe, "mma") {
			hot = append(hot, k.ID)
		} else {
			rest = append(rest, k.ID)
		}
	}
	return slices.Concat(hot, rest), hot
}

// later are the kernels that no suite beside a job runs, so that none takes longer for them: units that a job's few seconds
// are better spent without, and further formats of units that the others load.
var later = []string{
	"k03b_add64", "k10b_redux", "k12_regfile", "k14_icache", "k14c_const", "k15_l2", "k18h_mma_f16k8", "k18j_mma_s8k16", "k18t_mma_tf32",
	"k18d_dmma", "k18q_mma_s4", "k18x_mma_b1", "k19_mma_fp8", "k26_uniform", "k27_misc",
}

func isLater(id string) bool { return slices.Contains(later, id) }

// CorpusSuite runs no kernel, only the programs of a corpus. Each is a launch of well under a millisecond.
func CorpusSuite() Suite {
	return Suite{Name: "corpus", Does: "the programs of a corpus, one seed, and no kernel", Seeds: 1, Rounds: 1, Launch: 20 * time.Millisecond}
}

// LookupSuite gives a suite by its name.
func LookupSuite(name string) (Suite, error) {
	var names []string
	if name == CorpusSuite().Name {
		return CorpusSuite(), nil
	}
	for _, s := range Suites() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Suite{}, fmt.Errorf("suite %q: want one of %s", name, strings.Join(names, ", "))
}
