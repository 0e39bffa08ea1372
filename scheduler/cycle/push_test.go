package cycle

import (
	"testing"
	"time"

	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/quota"
)

// kueue 13148, 12580, 9712: with 2,000 nodes and 700 candidates a cycle that looked for victims took 40 s, since each of them
// was tried with a placement of its own. Here placements grow with the logarithm of the candidates and the victims kept.
func TestVictimsAmongMany(t *testing.T) {
	cfg := queue.DefaultConfig(2000, 8, 64)
	cfg.QOS = []queue.QOS{{Name: "low", UsageFactor: 1, Limits: queue.NoLimits()}, {Name: "high", UsageFactor: 1, Limits: queue.NoLimits(), Preempts: []string{"low"}}}
	w := newWorld(t, 100, 20, cfg, []quota.Spec{{Name: "all", Shares: 1, Nominal: quota.None(), Borrow: quota.None(), Lend: quota.None()}})
	for id := int64(1); id <= 700; id++ {
		nodes := 3
		if id > 600 {
			nodes = 2
		}
		if err := w.c.Queue.Submit(queue.Job{ID: id, Account: "all", Partition: "batch", QOS: "low", Nodes: nodes, GPUsPerNode: 8, Limit: 36000, Requeue: true}, w.now); err != nil {
			t.Fatal(err)
		}
	}
	w.round(t, true)
	if n := len(w.c.Queue.Running()); n != 700 {
		t.Fatalf("%d jobs run, want 700 candidates", n)
	}
	w.likes[1000] = func(g *scheduler.Gang) { g.Near = scheduler.Required }
	if err := w.c.Queue.Submit(queue.Job{ID: 1000, Account: "all", Partition: "batch", QOS: "high", Nodes: 20, GPUsPerNode: 8, Limit: 3600}, w.now+1); err != nil {
		t.Fatal(err)
	}
	w.now += 2
	w.carry(t, w.c.Event(w.now))
	began := time.Now()
	p, ok := w.c.Push(w.now)
	took := time.Since(began)
	if !ok || len(p.Plan.Nodes) != 20 {
		t.Fatalf("nobody is pushed out: %+v", p)
	}
	t.Logf("%d victims of 700 in %s", len(p.Victims), took)
	if len(p.Victims) > 8 { // a leaf of 20 nodes holds parts of 8 at most
		t.Errorf("%d victims for one leaf of 20 nodes", len(p.Victims))
	}
	if took > 10*time.Second { // a slow machine that does other things beside; a placement for each candidate takes longer
		t.Errorf("it took %s", took)
	}
}
