package cycle

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/quota"
)

// twoHalves is a world of two leaves of two nodes, each a partition: "fast", of the higher tier, and "slow".
func twoHalves(t rapid.TB, change func(*queue.Config)) *world {
	cfg := queue.DefaultConfig(4, 8, 64)
	cfg.Partitions = []queue.Partition{{Name: "fast", Tier: 2, JobFactor: 1}, {Name: "slow", Tier: 1, JobFactor: 1}}
	if change != nil {
		change(&cfg)
	}
	w := newWorld(t, 2, 2, cfg, []quota.Spec{{Name: "all", Shares: 1, Nominal: quota.None(), Borrow: quota.None(), Lend: quota.None()}})
	half := map[string]*scheduler.NodeSet{"fast": w.c.Fleet.View().Set(0, 1), "slow": w.c.Fleet.View().Set(2, 3)}
	w.c.Wishes = func(j *queue.Job, g *scheduler.Gang) { g.Within = append(g.Within, half[j.Partition]) }
	return w
}

func (w *world) come(t rapid.TB, id int64, nodes int, limit int64, partitions ...string) {
	t.Helper()
	j := queue.Job{ID: id, Account: "all", Partition: partitions[0], QOS: "normal", Nodes: nodes, GPUsPerNode: 8, Limit: limit, Requeue: true}
	if len(partitions) > 1 {
		j.Partitions = partitions
	}
	if err := w.c.Queue.Submit(j, w.now); err != nil {
		t.Fatalf("%v", err)
	}
}

// A job that names two partitions starts in the one where it can first, whichever it named first and whichever has the
// higher tier; what it counts for is counted there.
func TestTheEarliestPartition(t *testing.T) {
	w := twoHalves(t, nil)
	w.come(t, 1, 2, 5*3600, "fast")
	w.come(t, 2, 2, 3600, "fast", "slow")
	w.come(t, 3, 2, 600, "slow", "fast")
	w.come(t, 4, 1, 600, "slow")
	w.round(t, true)
	if got, want := w.take(), "1 starts on n[01-02]\n2 starts on n[03-04]"; got != want {
		t.Fatalf("%s\nwant\n%s", got, want)
	}
	if p := w.c.Queue.Job(2).Partition; p != "slow" {
		t.Errorf("job 2 runs in %s", p)
	}
	p, ok := w.c.Planned(3)
	if !ok || p.Start != w.now+3600 || w.nodes(p.Nodes) != "n[03-04]" {
		t.Errorf("job 3 is planned at %+d on %s, want in an hour on what job 2 has", p.Start-w.now, w.nodes(p.Nodes))
	}
	// Its tier puts it before job 4, which names the lower one alone.
	if why := w.c.Explain(4); why.Code != queue.PriorityReason {
		t.Errorf("job 4: %+v", why)
	}
}

// A limit of one partition does not keep a job from another.
func TestALimitOfOnePartition(t *testing.T) {
	w := twoHalves(t, func(c *queue.Config) { c.Partitions[0].MaxTime = 600; c.Partitions[1].State = queue.Down })
	w.come(t, 1, 1, 3600, "fast", "slow")
	w.round(t, true)
	if why := w.c.Explain(1); w.take() != "" || why.Code != queue.PartitionTimeLimit && why.Code != queue.PartitionDown {
		t.Fatalf("job 1: %+v", why)
	}
	w = twoHalves(t, func(c *queue.Config) { c.Partitions[0].MaxTime = 600 })
	w.come(t, 1, 1, 3600, "fast", "slow")
	w.round(t, true)
	if got, want := w.take(), "1 starts on n03"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	w = twoHalves(t, func(c *queue.Config) { c.Partitions[0].MaxNodes = 1 })
	w.come(t, 1, 2, 3600, "slow")
	w.round(t, true)
	w.come(t, 2, 2, 600, "fast", "slow")
	w.round(t, true)
	if why := w.c.Explain(2); why.Code != queue.Resources {
		t.Errorf("job 2 waits for what the other partition says: %+v", why)
	}
}

// Whatever comes and goes: a job runs once, in a partition that it named and on its nodes, and none that starts is planned.
// At the end nothing is counted for anybody.
func TestSeveralPartitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := queue.NoLimits()
		limit.GrpJobs = rapid.IntRange(1, 3).Draw(t, "jobs in fast")
		w := twoHalves(t, func(c *queue.Config) {
			c.QOS = append(c.QOS, queue.QOS{Name: "part", UsageFactor: 1, Limits: limit})
			c.Partitions[0].QOS = "part"
		})
		for id := int64(1); id <= int64(rapid.IntRange(1, 15).Draw(t, "jobs")); id++ {
			named := rapid.SampledFrom([][]string{{"fast"}, {"slow"}, {"fast", "slow"}, {"slow", "fast"}}).Draw(t, "partitions")
			w.come(t, id, rapid.IntRange(1, 2).Draw(t, "nodes"), int64(rapid.IntRange(1, 90).Draw(t, "minutes"))*60, named...)
			w.now += int64(rapid.IntRange(0, 1200).Draw(t, "seconds"))
			w.due(t)
			w.round(t, rapid.Bool().Draw(t, "plan"))
			inFast := 0
			for _, run := range w.c.Queue.Running() {
				j := w.c.Queue.Job(run)
				if _, planned := w.c.Planned(run); planned {
					t.Fatalf("%d runs and is planned", run)
				}
				if len(j.Partitions) > 0 && !slices.Contains(j.Partitions, j.Partition) {
					t.Fatalf("%d runs in %s", run, j.Partition)
				}
				for _, take := range w.c.Fleet.Work(ID(run)).Nodes {
					if (take.Node < 2) != (j.Partition == "fast") {
						t.Fatalf("%d of partition %s is on node %d", run, j.Partition, take.Node)
					}
				}
				if j.Partition == "fast" {
					inFast++
				}
			}
			if inFast > limit.GrpJobs {
				t.Fatalf("%d jobs run in fast, which may run %d", inFast, limit.GrpJobs)
			}
		}
		for _, ids := range [][]int64{slices.Clone(w.c.Queue.Pending()), slices.Clone(w.c.Queue.Running())} {
			for _, id := range ids {
				if err := w.c.Queue.Cancel(id, w.now); err != nil {
					t.Fatal(err)
				}
			}
		}
		for name, s := range w.c.Queue.Standings() {
			if s.Queued != 0 || s.Running != 0 {
				t.Fatalf("%s: %s", name, fmt.Sprint(s))
			}
		}
		// The limit of fast's own QOS has room for as many as ever.
		for id := int64(100); id < 100+int64(limit.GrpJobs); id++ {
			w.come(t, id, 1, 600, "fast")
			if err := w.c.Queue.Start(id, w.now); err != nil {
				t.Fatal(err)
			}
		}
		w.come(t, 200, 1, 600, "fast")
		if r := w.c.Queue.Budget().Admit(w.c.Queue.Job(200), w.now); r.Code != "QOSGrpJobsLimit" {
			t.Fatalf("one more than may run: %+v", r)
		}
	})
}
