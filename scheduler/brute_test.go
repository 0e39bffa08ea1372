package scheduler

import (
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/scheduler/topo"
)

// TestOptimum compares every placement on every small tree with the best there is by trying them all: up to three levels,
// every way to hang the leaves under aggregation switches, every number of nodes in each, every number of these free, every
// size of gang, alone and in segments. Four leaves of three nodes are tried in full, and of the larger trees up to six
// leaves of four nodes one in five thousand. ASSAY_SOAK=1 tries all of these, which takes hours.
func TestOptimum(t *testing.T) {
	leaves, nodes, one := 6, 4, 5003
	switch {
	case os.Getenv("ASSAY_SOAK") != "":
		one = 1
	case testing.Short():
		leaves = 3
	}
	cases, trees := 0, 0
	for n := 1; n <= leaves; n++ {
		for cut := range 1 << (n - 1) { // bit i: leaf i+1 hangs under another switch than leaf i
			forEach(n, nodes, func(sizes []int) {
				for i := 1; i < n; i++ {
					if cut&(1<<(i-1)) == 0 && sizes[i] > sizes[i-1] {
						return // leaves of one switch may change places
					}
				}
				if n > 4 || slices.Max(sizes) > 3 {
					if trees++; trees%one != 0 {
						return
					}
				}
				cases += optimum(t, sizes, cut)
			})
		}
	}
	t.Logf("%d placements", cases)
	if cases < 1000 {
		t.Errorf("only %d placements tried", cases)
	}
}

// forEach calls do with every list of n numbers from 0 to most that is not all 0.
func forEach(n, most int, do func([]int)) {
	list := make([]int, n)
	for {
		i := 0
		for ; i < n && list[i] == most; i++ {
			list[i] = 0
		}
		if i == n {
			return
		}
		list[i]++
		do(list)
	}
}

// treeCut is a tree of leaves of the sizes given, under aggregation switches that end where cut says, under a core.
func treeCut(sizes []int, cut int) *topo.Tree {
	var b strings.Builder
	n, first := 0, 0
	aggs := 0
	for i, size := range sizes {
		fmt.Fprintf(&b, "SwitchName=leaf%d Nodes=", i)
		if size > 0 {
			fmt.Fprintf(&b, "n[%d-%d]", n+1, n+size)
		}
		n += size
		b.WriteByte('\n')
		if i == len(sizes)-1 || cut&(1<<i) != 0 {
			fmt.Fprintf(&b, "SwitchName=agg%d Switches=leaf[%d-%d]\n", aggs, first, i)
			first, aggs = i+1, aggs+1
		}
	}
	if aggs > 1 {
		fmt.Fprintf(&b, "SwitchName=core Switches=agg[0-%d]\n", aggs-1)
	}
	tr, _ := topo.Parse(b.String(), nil) // that a leaf has no node is meant
	return tr
}

// optimum tries every free state of one tree, and every size of gang.
func optimum(t *testing.T, sizes []int, cut int) int {
	tr := treeCut(sizes, cut)
	f := certified(t, tr, eight)
	free := slices.Clone(sizes)
	cases := 0
	for {
		for size := 1; size <= len(tr.Nodes); size++ {
			for segment := 1; segment <= min(size, 4); segment++ {
				if size%segment != 0 {
					continue
				}
				cases++
				g := Gang{ID: "g", Nodes: size, Segment: segment}
				got, ok := Find(f.View(), g)
				want, possible := bruteForce(tr, sizes, free, size, segment)
				switch {
				case ok != possible:
					t.Fatalf("leaves %v, cut %b, free %v: %d nodes in segments of %d: placed %v, possible %v", sizes, cut, free, size, segment, ok, possible)
				case ok && got.Cost != want:
					t.Fatalf("leaves %v, cut %b, free %v: %d nodes in segments of %d: cost %+v, best %+v", sizes, cut, free, size, segment, got.Cost, want)
				}
			}
		}
		// The next free state: the first leaf that has a free node loses one, those before it are free again.
		i := 0
		for ; i < len(sizes) && free[i] == 0; i++ {
			free[i] = sizes[i]
			for j := range int32(sizes[i]) {
				f.Unbar(tr.Switches[i].Lo + j)
			}
		}
		if i == len(sizes) {
			return cases
		}
		free[i]--
		f.Bar(tr.Switches[i].Lo+int32(free[i]), Bar{Why: "lost"})
	}
}

// bruteForce is the least cost over every set of leaves: nodes of a leaf are worth the same, so a set that holds the gang
// with some node in each leaf stands for all ways to use it.
func bruteForce(tr *topo.Tree, sizes, free []int, size, segment int) (best Cost, found bool) {
	for set := uint(1); set < 1<<len(sizes); set++ {
		c := Cost{Leaves: bits.OnesCount(set), Left: -size}
		lumps, common := 0, topo.None
		for l := range sizes {
			if set&(1<<l) == 0 {
				continue
			}
			if common == topo.None {
				common = int32(l)
			}
			common = tr.Common(common, int32(l))
			if free[l] < segment {
				common = topo.None
				break
			}
			lumps += free[l] / segment
			c.Left += free[l]
			c.Broken += one(free[l] == sizes[l])
		}
		if common == topo.None || lumps < size/segment || c.Leaves > size/segment {
			continue
		}
		c.Height = tr.Switches[common].Height
		if !found || c.Less(best) {
			best, found = c, true
		}
	}
	return best, found
}

// TestEveryNodeChoice tries every set of nodes, not of leaves, on the smallest trees, with half of the nodes partly taken:
// what bruteForce takes for granted, and the GPUs left over on nodes that a gang shares.
func TestEveryNodeChoice(t *testing.T) {
	tr := treeOf([]int{3, 2, 3}, 2, 0)
	for state := range 1 << 16 {
		if state%7 != 0 && testing.Short() {
			continue
		}
		f := certified(t, tr, topo.NewShape("pcie4", 4, false))
		for i := range int32(8) {
			if mask := uint32(1)<<(state>>(2*i)&3) - 1; mask != 0 {
				if err := f.Start(&Running{ID: fmt.Sprint(i), Nodes: []Take{{Node: i, GPUs: mask}}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, g := range []Gang{{ID: "g", Nodes: 1, GPUs: 2}, {ID: "g", Nodes: 1, GPUs: 1}, {ID: "g", Nodes: 2, GPUs: 3}} {
			got, ok := Find(f.View(), g)
			want, possible := Cost{}, false
			a, err := newAsk(f.View(), &g)
			if err != nil {
				t.Fatal(err)
			}
			for set := uint(1); set < 1<<8; set++ {
				if bits.OnesCount(set) != g.Nodes {
					continue
				}
				var takes []Take
				for i := range int32(8) {
					if n := f.View().node(i); set&(1<<i) != 0 && bits.OnesCount32(n.free) >= g.GPUs {
						takes = append(takes, Take{Node: i, GPUs: n.shape.Pick(n.free, g.GPUs)})
					}
				}
				if len(takes) < g.Nodes {
					continue
				}
				if c := a.cost(takes); !possible || c.Less(want) {
					want, possible = c, true
				}
			}
			// Over several leaves the leaves are chosen before the nodes, so only the single leaf is exact in Waste.
			if ok != possible || ok && want.Leaves == 1 && got.Cost != want || ok && (got.Cost.Height != want.Height || got.Cost.Leaves != want.Leaves) {
				t.Fatalf("state %#x, %d nodes of %d GPUs: cost %+v, best %+v", state, g.Nodes, g.GPUs, got.Cost, want)
			}
		}
	}
}
