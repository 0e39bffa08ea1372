package cycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/mutants/byhand"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/quota"
)

// A score is how well a day's gangs were placed.
type score struct {
	leaves, bound int     // used by gangs of several nodes, and the fewest that held as many free, certified nodes
	lapsing       int     // nodes taken whose certificate ended sooner than asked
	high, low     float64 // mean wait in minutes of the two classes
}

func (s score) String() string {
	return fmt.Sprintf("leaves over the bound %.3f, lapsing nodes taken %d, mean wait high %.0f min, low %.0f min", float64(s.leaves)/float64(s.bound), s.lapsing, s.high, s.low)
}

// day has 300 gangs of two classes come to 64 nodes, whose certificates end at any time and are renewed an hour after.
func day(t *testing.T, seed uint64) score {
	rnd := rand.New(rand.NewPCG(seed, 7))
	cfg := queue.DefaultConfig(64, 8, 64)
	cfg.Weights = queue.Weights{QOS: 1000}
	cfg.QOS = []queue.QOS{{Name: "low", UsageFactor: 1, Limits: queue.NoLimits()}, {Name: "high", UsageFactor: 1, Limits: queue.NoLimits(), Priority: 10}}
	w := newWorld(t, 8, 8, cfg, []quota.Spec{{Name: "all", Shares: 1, Nominal: quota.None(), Borrow: quota.None(), Lend: quota.None()}})
	w.c.Options.Renew = true
	start := w.now
	ends := make([]int64, 64)
	certify := func(i int32, lasts int64) {
		now := time.Unix(w.now, 0)
		ends[i] = w.now + lasts
		w.c.Fleet.Certify(i, scheduler.Certificate{Serial: uint64(w.now), Level: checks.Standard, GPUs: eight.All(), Issued: now, Expires: time.Unix(ends[i], 0)})
	}
	for i := range int32(64) {
		certify(i, 1800+rnd.Int64N(8*3600))
	}
	var s score
	var waits [2][]int64
	next := int64(1)
	for step := range int64(18 * 60) {
		minute := step * 2
		w.now = start + minute*60
		for i := range int32(64) {
			if w.now >= ends[i]+3600 {
				certify(i, 8*3600)
			}
		}
		for next <= 300 && minute >= next*4 {
			j := queue.Job{ID: next, Account: "all", Partition: "batch", QOS: []string{"low", "high"}[next%2], GPUsPerNode: 8,
				Nodes: []int{1, 1, 2, 2, 3, 4, 4, 6, 8, 12, 16}[rnd.IntN(11)], Limit: 60 * (20 + rnd.Int64N(100))}
			w.run[next] = j.Limit * (3 + rnd.Int64N(7)) / 10
			if err := w.c.Queue.Submit(j, w.now); err != nil {
				t.Fatal(err)
			}
			next++
		}
		w.due(t)
		w.said = nil
		starts := w.c.Event(w.now)
		if minute%10 == 0 {
			starts = w.c.Replan(w.now)
		}
		for _, x := range starts {
			s.count(w, x)
			j := w.c.Queue.Job(x.ID)
			waits[x.ID%2] = append(waits[x.ID%2], (w.now-j.Submit)/60)
			if err := w.c.Fleet.Start(&scheduler.Running{ID: ID(x.ID), Nodes: x.Plan.Nodes, Start: time.Unix(w.now, 0), End: time.Unix(w.now+j.Limit, 0)}); err != nil {
				t.Fatal(err)
			}
			if err := w.c.Queue.Start(x.ID, w.now); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(waits[0]) + len(waits[1]); n < 290 {
		t.Errorf("%d of 300 gangs have started in a day and a half", n)
	}
	s.low, s.high = mean(waits[0]), mean(waits[1])
	return s
}

func mean(all []int64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += float64(x)
	}
	return sum / float64(max(len(all), 1))
}

// count adds a start to the score, by the fleet as it is before it.
func (s *score) count(w *world, x Start) {
	snap := w.c.Fleet.View()
	tree := snap.Tree()
	used, free := map[int32]bool{}, map[int32]int{}
	for _, take := range x.Plan.Nodes {
		used[tree.Leaf[take.Node]] = true
		left := snap.Node(take.Node).Certificate.Expires.Unix() - w.now
		if left < min(w.c.Queue.Job(x.ID).Limit, 3600) {
			s.lapsing++
		}
	}
	if len(x.Plan.Nodes) < 2 {
		return
	}
	for i := range int32(snap.Len()) {
		if n := snap.Node(i); n.Free == eight.All() && n.Certificate.Expires.Unix()-w.now >= min(w.c.Queue.Job(x.ID).Limit, 3600) {
			free[tree.Leaf[i]]++
		}
	}
	var sizes []int
	for _, n := range free {
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	bound := 0
	for need := len(x.Plan.Nodes); need > 0 && len(sizes) > 0; bound++ {
		need -= sizes[len(sizes)-1]
		sizes = sizes[:len(sizes)-1]
	}
	s.leaves, s.bound = s.leaves+len(used), s.bound+bound
}

// What a day scores at least. Leaves may be over the bound where nodes that are free have no certificate, or are promised.
func TestQuality(t *testing.T) {
	for seed := range uint64(3) {
		s := day(t, seed)
		t.Logf("seed %d: %s", seed, s)
		switch {
		case float64(s.leaves) > 1.1*float64(s.bound):
			t.Errorf("seed %d: too far apart: %s", seed, s)
		case s.lapsing > 0:
			t.Errorf("seed %d: on certificates that lapse: %s", seed, s)
		case s.high*2 > s.low:
			t.Errorf("seed %d: who should go first hardly does: %s", seed, s)
		}
	}
}

// poor are wrong schedulers of which the score alone must tell. The right one is 1.01 to 1.03 leaves over the bound, takes no
// lapsing node, and lets the high class wait 8 to 13 minutes of the low one's 64 to 348. Without topology it is 1.28 to 1.31
// leaves; without expiry 316 to 341 nodes lapse; with Before turned round the high class waits 63 to 275 minutes.
var poor = []byhand.Mutant{
	{Name: "topology is ignored", Package: "cycle", File: "search.go", Old: "if p, ok := a.oneBin(); ok {", New: "if p, ok := a.anywhere(); ok {"},
	{Name: "expiry is ignored", Package: "cycle", File: "ask.go", Old: "b.first[k] < a.until {", New: "false {"},
	{Name: "Before is turned round", Package: "cycle", File: "queue/before.go", Old: "		cmp.Compare(b.Priority, a.Priority),\n", New: "		cmp.Compare(a.Priority, b.Priority),\n"},
}

// Each mutant changes one place of the source as it is.
func TestPoorSchedulersAreSaid(t *testing.T) { byhand.Said(t, "..", poor) }

// TestMutantsScoreWorse runs the days with each mutant.
func TestMutantsScoreWorse(t *testing.T) { byhand.Run(t, "..", poor, "-run", "TestQuality") }
