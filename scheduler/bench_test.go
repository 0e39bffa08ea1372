package scheduler

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// mix is how many gangs of each size, in nodes, the benchmark beside Slurm submits: 1,217 gangs, 7,936 nodes.
var mix = []struct{ gangs, nodes int }{{600, 1}, {200, 2}, {150, 4}, {120, 8}, {80, 16}, {40, 32}, {16, 64}, {8, 128}, {3, 256}}

// draw is the size of one gang of the mix.
func draw(r *rand.Rand) int {
	k := r.IntN(1217)
	for _, m := range mix {
		if k < m.gangs {
			return m.nodes
		}
		k -= m.gangs
	}
	panic("the mix has 1217 gangs")
}

// large is a tree of n nodes: leaves of 20, 20 leaves to an aggregation switch, 25 of these to a core, one root. With
// ASSAY_TOPOLOGY it is that topology.conf instead, if it has n nodes.
func large(tb testing.TB, n int) *topo.Tree {
	tb.Helper()
	if file := os.Getenv("ASSAY_TOPOLOGY"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		if t, _ := topo.Parse(string(text), nil); t != nil && len(t.Nodes) == n {
			return t
		}
	}
	var b strings.Builder
	leaves := n / 20
	for l := range leaves {
		fmt.Fprintf(&b, "SwitchName=leaf%05d Nodes=gpu[%07d-%07d]\n", l, l*20+1, l*20+20)
	}
	level, name := leaves, "leaf"
	for h, width := range []int{20, 25, 1 << 20} {
		up := (level + width - 1) / width
		for s := range up {
			fmt.Fprintf(&b, "SwitchName=l%d-%05d Switches=%s[%05d-%05d]\n", h, s, name, s*width, min((s+1)*width, level)-1)
		}
		level, name = up, fmt.Sprintf("l%d-", h)
	}
	t, faults := topo.Parse(b.String(), nil)
	if len(faults) > 0 {
		tb.Fatal(faults)
	}
	return t
}

// A churn keeps a fleet 90 % busy with gangs of the mix.
type churn struct {
	f     *Fleet
	r     *rand.Rand
	ids   []string
	sizes map[string]int
	busy  int
	next  int

	gangs, leaves, bound, widest int // placed; leaves they touched; the least any tree of these leaves allows
}

func newChurn(tb testing.TB, n int) *churn {
	t := large(tb, n)
	c := &churn{f: certified(tb, t, eight), r: rand.New(rand.NewPCG(1, 2)), sizes: map[string]int{}}
	for l := range t.Leaves() {
		c.widest = max(c.widest, int(t.Switches[l].Hi-t.Switches[l].Lo))
	}
	return c
}

// fill places gangs until nine nodes of ten are busy, and returns how many.
func (c *churn) fill(tb testing.TB, place func(*Snapshot, Gang) Plan) int {
	n := 0
	for ; c.busy < c.f.View().Len()*9/10; n++ {
		c.next++
		g := Gang{ID: fmt.Sprint(c.next), Nodes: draw(c.r), GPUs: 8}
		p := place(c.f.View(), g)
		if !p.OK() {
			tb.Fatalf("%d nodes do not fit with %d busy: %+v", g.Nodes, c.busy, p.Refused)
		}
		if err := c.f.Start(&Running{ID: g.ID, Nodes: p.Nodes}); err != nil {
			tb.Fatal(err)
		}
		c.ids, c.sizes[g.ID] = append(c.ids, g.ID), g.Nodes
		c.busy += g.Nodes
		c.gangs, c.leaves, c.bound = c.gangs+1, c.leaves+p.Cost.Leaves, c.bound+(g.Nodes+c.widest-1)/c.widest
	}
	return n
}

// release ends a gang drawn by chance.
func (c *churn) release() {
	i := c.r.IntN(len(c.ids))
	id := c.ids[i]
	c.ids[i] = c.ids[len(c.ids)-1]
	c.ids = c.ids[:len(c.ids)-1]
	c.f.End(id)
	c.busy -= c.sizes[id]
	delete(c.sizes, id)
}

// firstFit takes the first free nodes there are, wherever they hang: the naive way to place.
func firstFit(s *Snapshot, g Gang) Plan {
	p := Plan{Gang: g.ID, Nodes: make([]Take, 0, g.Nodes)}
	for i := range int32(s.Len()) {
		n := s.node(i)
		if n.free == 0xff && n.covered == 0xff && n.bar == nil && n.expires >= s.now+3600 {
			if p.Nodes = append(p.Nodes, Take{Node: i, GPUs: 0xff}); len(p.Nodes) == g.Nodes {
				t := s.Tree()
				last := topo.None
				for _, x := range p.Nodes {
					if t.Leaf[x.Node] != last {
						p.Cost.Leaves++
						last = t.Leaf[x.Node]
					}
				}
				return p
			}
		}
	}
	p.Nodes = nil
	return p
}

// busyTime reports the processor time of an operation beside its time on the wall: on a machine that does other things it
// is the one that says what the work costs.
func busyTime(b *testing.B, loop func()) {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	loop()
	b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op")
}

// BenchmarkMix places and releases gangs of the mix on 10,000 nodes that are 90 % busy, after 100,000 random releases.
// An operation is a gang placed and one released.
func BenchmarkMix(b *testing.B) {
	for _, way := range []struct {
		name  string
		place func(*Snapshot, Gang) Plan
	}{{"place", Place}, {"first fit", firstFit}} {
		b.Run(way.name, func(b *testing.B) {
			c := newChurn(b, 10000)
			c.fill(b, way.place)
			for range 100_000 {
				c.release()
				c.fill(b, way.place)
			}
			c.gangs, c.leaves, c.bound = 0, 0, 0
			b.ReportAllocs()
			b.ResetTimer()
			busyTime(b, func() {
				for c.gangs < b.N {
					c.release()
					c.fill(b, way.place)
				}
			})
			b.ReportMetric(float64(c.gangs)/b.Elapsed().Seconds(), "gangs/s")
			b.ReportMetric(float64(c.leaves)/float64(c.bound), "leaves/bound")
		})
	}
}

// worn is a fleet of n nodes of which a random tenth is busy and a hundredth not certified; certificates end at times
// spread over 12 hours.
func worn(tb testing.TB, n int) *Fleet {
	t := large(tb, n)
	f := NewFleet(t, epoch)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range int32(n) {
		if err := f.See(i, eight, 0); err != nil {
			tb.Fatal(err)
		}
		if r.IntN(100) > 0 {
			left := time.Duration(r.Int64N(int64(12 * time.Hour)))
			f.Certify(i, Certificate{Serial: uint64(i) + 1, Level: checks.Quick, GPUs: 0xff, Issued: epoch.Add(left - 12*time.Hour), Expires: epoch.Add(left)})
		}
		if r.IntN(10) == 0 {
			if err := f.Start(&Running{ID: fmt.Sprint(i), Nodes: []Take{{Node: i, GPUs: 0xff}}}); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return f
}

// BenchmarkLarge places one gang of 1,024 nodes, once on 100,000 nodes as issue by issue of certificates leaves them, and
// once with all certificates fresh.
func BenchmarkLarge(b *testing.B) {
	f := worn(b, 100_000)
	bench := func(b *testing.B, f *Fleet) {
		s := f.Snapshot()
		var took []time.Duration
		b.ReportAllocs()
		busyTime(b, func() {
			for range b.N {
				from := time.Now()
				if p := Place(s, Gang{ID: "g", Nodes: 1024, GPUs: 8}); !p.OK() {
					b.Fatalf("%+v", p.Refused)
				}
				took = append(took, time.Since(from))
			}
		})
		// Most are shorter than a turn on the processor, so that the median says what one takes whatever else runs.
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
		b.ReportMetric(float64(took[0].Nanoseconds()), "least-ns")
	}
	b.Run("certificates of every age", func(b *testing.B) { bench(b, f) })
	for i := range int32(100_000) {
		if f.View().node(i).level != 0 {
			f.Certify(i, Certificate{Serial: uint64(i) + 1, Level: checks.Quick, GPUs: 0xff, Issued: epoch, Expires: epoch.Add(12 * time.Hour)})
		}
	}
	b.Run("fresh certificates", func(b *testing.B) { bench(b, f) })
}

// BenchmarkGrowth places gangs of 8 and 512 nodes, and refuses one larger than the fleet, on fleets of 1,000 to 1,000,000
// nodes.
func BenchmarkGrowth(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000, 1_000_000} {
		if n == 1_000_000 && testing.Short() {
			continue
		}
		s := worn(b, n).Snapshot()
		for _, size := range []int{8, 512, n + 1} {
			name := fmt.Sprintf("nodes=%d/gang=%d", n, size)
			if size > n {
				name = fmt.Sprintf("nodes=%d/refused", n)
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				busyTime(b, func() {
					for range b.N {
						if p := Place(s, Gang{ID: "g", Nodes: size, GPUs: 8}); p.OK() != (size <= n) {
							b.Fatal(p.Refused)
						}
					}
				})
			})
		}
	}
}

// BenchmarkSmall places gangs of a quarter and of half of the fleet on the sizes that Kueue's BenchmarkTASFlavorAssignment
// has: three levels, 100, 500 and 2,500 nodes.
func BenchmarkSmall(b *testing.B) {
	for _, n := range []int{100, 500, 2500} {
		s := certified(b, large(b, n), eight).Snapshot()
		for _, part := range []int{4, 2} {
			b.Run(fmt.Sprintf("nodes=%d/gang=%d", n, n/part), func(b *testing.B) {
				b.ReportAllocs()
				busyTime(b, func() {
					for range b.N {
						if p := Place(s, Gang{ID: "g", Nodes: n / part, GPUs: 8}); !p.OK() {
							b.Fatal(p.Refused)
						}
					}
				})
			})
		}
	}
}
