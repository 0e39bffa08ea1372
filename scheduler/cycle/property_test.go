package cycle

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/quota"
)

// drawQuotas is two accounts that own something, or not.
func drawQuotas(t *rapid.T) []quota.Spec {
	var specs []quota.Spec
	for _, name := range []string{"a", "b"} {
		s := quota.Spec{Name: name, Shares: 1, Nominal: quota.None(), Borrow: quota.None(), Lend: quota.None()}
		if rapid.Bool().Draw(t, "owns") {
			s.Nominal[quota.GPUs] = int64(rapid.IntRange(0, 6).Draw(t, "nominal")) * 8
		}
		if rapid.IntRange(0, 3).Draw(t, "limited") == 0 {
			s.Borrow[quota.GPUs] = int64(rapid.IntRange(0, 3).Draw(t, "borrow")) * 8
		}
		specs = append(specs, s)
	}
	return specs
}

// Whatever comes, ends, fails and is pushed out: the planner and the applier never disagree, the potential falls with every
// push, victims stand after those who push them out, limits hold, and pushing ends. carry and round check most of it.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := queue.DefaultConfig(8, 8, 64)
		limit := queue.NoLimits()
		limit.MaxPerUser[quota.GPUs] = 40
		cfg.QOS = []queue.QOS{{Name: "low", Limits: queue.NoLimits(), Grace: int64(rapid.IntRange(0, 120).Draw(t, "grace"))},
			{Name: "normal", Limits: limit, Preempts: []string{"low"}}, {Name: "high", Limits: queue.NoLimits(), Preempts: []string{"low", "normal"}, Priority: 1}}
		w := newWorld(t, 2, 4, cfg, drawQuotas(t))
		pushes := 0
		for id := int64(1); id <= int64(rapid.IntRange(1, 30).Draw(t, "steps")); id++ {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				n := rapid.Int32Range(0, 7).Draw(t, "node")
				if w.c.Fleet.View().Node(n).Bar == nil {
					w.c.Fleet.Bar(n, scheduler.Bar{Why: "sick"})
				} else {
					w.c.Fleet.Unbar(n)
				}
			case 1:
				if ids := w.c.Queue.Running(); len(ids) > 0 {
					w.end(t, rapid.SampledFrom(ids).Draw(t, "which"), queue.Ending{State: queue.NodeFail, Node: "n01", At: w.now})
				}
			case 2:
				w.now += int64(rapid.IntRange(1, 7200).Draw(t, "seconds"))
			default:
				j := queue.Job{ID: id, Account: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "account"), Partition: "batch", Requeue: true,
					QOS: rapid.SampledFrom([]string{"low", "normal", "high"}).Draw(t, "qos"), Nodes: rapid.IntRange(1, 6).Draw(t, "nodes"),
					GPUsPerNode: rapid.SampledFrom([]int{1, 4, 8}).Draw(t, "gpus"), Limit: int64(rapid.IntRange(1, 600).Draw(t, "minutes")) * 60}
				if rapid.Bool().Draw(t, "near") {
					w.likes[id] = func(g *scheduler.Gang) { g.Near = scheduler.Required }
				}
				if err := w.c.Queue.Submit(j, w.now); err != nil {
					t.Fatal(err)
				}
			}
			w.due(t)
			w.round(t, rapid.Bool().Draw(t, "plan"))
			for _, s := range w.said {
				var a, b int64
				if n, _ := fmt.Sscanf(s, "%d pushes out %d", &a, &b); n == 2 {
					pushes++
				}
			}
			w.said = nil
			if pushes > int(id)*8 {
				t.Fatalf("%d pushes after %d steps: it does not end", pushes, id)
			}
			var held int64
			for _, r := range w.c.Queue.Running() {
				j := w.c.Queue.Job(r)
				if w.c.Fleet.Work(ID(r)) == nil {
					t.Fatalf("%d runs in the queue and not in the fleet", r)
				}
				if j.QOS == "normal" {
					held += j.Amounts()[quota.GPUs]
				}
			}
			if held > 40 {
				t.Fatalf("a user of QOS normal holds %d GPUs of 40", held)
			}
		}
	})
}
