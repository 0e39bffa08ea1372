package cycle

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/backfill"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/quota"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// busyFleet is nodes in leaves of 20, 90 % of them in use for up to a day, and a queue of pending gangs of so many shapes.
func busyFleet(b *testing.B, nodes, pending, shapes int) *Cycle {
	b.Helper()
	var text strings.Builder
	leaves := (nodes + 19) / 20
	for l := range leaves {
		fmt.Fprintf(&text, "SwitchName=leaf%d Nodes=n[%06d-%06d]\n", l, l*20+1, min(nodes, (l+1)*20))
	}
	fmt.Fprintf(&text, "SwitchName=spine Switches=leaf[0-%d]\n", leaves-1)
	tree, _ := topo.Parse(text.String(), nil)
	now := time.Unix(1_800_000_000, 0)
	f := scheduler.NewFleet(tree, now)
	for i := range int32(nodes) {
		if err := f.See(i, eight, 0); err != nil {
			b.Fatal(err)
		}
		f.Certify(i, scheduler.Certificate{Serial: uint64(i + 1), Level: checks.Standard, GPUs: eight.All(), Issued: now, Expires: now.Add(24 * time.Hour)})
	}
	sizes := mixedSizes()
	mix := uint64(1)
	draw := func(n int) int { mix = mix*6364136223846793005 + 1442695040888963407; return int(mix>>33) % n }
	for used, id := 0, 0; used < nodes*9/10; id++ {
		g := scheduler.Gang{ID: fmt.Sprint("r", id), Nodes: min(sizes[draw(len(sizes))], nodes*9/10-used), Limit: time.Hour}
		p, ok := scheduler.Find(f.View(), g)
		if !ok {
			continue
		}
		if err := f.Start(&scheduler.Running{ID: g.ID, Nodes: p.Nodes, Start: now, End: now.Add(time.Duration(1+draw(1440)) * time.Minute)}); err != nil {
			b.Fatal(err)
		}
		used += g.Nodes
	}
	none := quota.Spec{Name: "all", Shares: 1, Nominal: quota.None(), Borrow: quota.None(), Lend: quota.None()}
	accounts, err := quota.NewTree([]quota.Spec{none})
	if err != nil {
		b.Fatal(err)
	}
	q, err := queue.New(queue.DefaultConfig(nodes, 8, 64), accounts, now.Unix())
	if err != nil {
		b.Fatal(err)
	}
	for i := range pending {
		s := i % shapes
		j := queue.Job{ID: int64(i + 1), Account: "all", Partition: "batch", QOS: "normal", Nodes: sizes[s*7919%len(sizes)], GPUsPerNode: 8, Limit: int64(600 + 60*s)}
		if err := q.Submit(j, now.Unix()); err != nil {
			b.Fatal(err)
		}
	}
	return &Cycle{Queue: q, Fleet: f, Options: backfill.DefaultOptions()}
}

// BenchmarkReplan is a plan from nothing: 10,000 nodes, 90 % busy, 10,000 pending of 300 shapes, at depths.
func BenchmarkReplan(b *testing.B) {
	for _, depth := range []int{1000, 10000} {
		b.Run(fmt.Sprint("depth=", depth), func(b *testing.B) {
			c := busyFleet(b, benchNodes, 10_000, 300)
			c.Options.Depth = depth
			now := c.Fleet.View().Now().Unix()
			var took, used []time.Duration
			for b.Loop() {
				t, u := time.Now(), cpu(b)
				c.Replan(now)
				took, used = append(took, time.Since(t)), append(used, cpu(b)-u)
			}
			quantiles(b, took, "wall")
			quantiles(b, used, "cpu")
			s := c.Schedule()
			b.ReportMetric(float64(len(s.Planned)), "planned")
			b.ReportMetric(float64(s.Spots), "spots")
		})
	}
}

// BenchmarkEvent is a pass after one running gang has ended, its nodes being taken or not: 10,000 nodes, 10,000 pending.
func BenchmarkEvent(b *testing.B) {
	for _, shapes := range []int{300, 10_000} {
		b.Run(fmt.Sprint("shapes=", shapes), func(b *testing.B) {
			c := busyFleet(b, benchNodes, 10_000, shapes)
			now := c.Fleet.View().Now().Unix()
			carryOut(b, c, c.Replan(now), now)
			var ids []string
			for r := range c.Fleet.Snapshot().Running() {
				ids = append(ids, r.ID)
			}
			var took, used []time.Duration
			for i := 0; b.Loop(); i++ {
				if i < len(ids) {
					c.Fleet.End(ids[i])
				}
				t, u := time.Now(), cpu(b)
				starts := c.Event(now)
				took, used = append(took, time.Since(t)), append(used, cpu(b)-u)
				carryOut(b, c, starts, now)
			}
			quantiles(b, took, "wall")
			quantiles(b, used, "cpu")
		})
	}
}

// BenchmarkGrowth is the event pass and the plan of the first 1,000 against nodes and queue. Each event is the end of one
// running gang.
func BenchmarkGrowth(b *testing.B) {
	if os.Getenv("ASSAY_GROWTH") == "" {
		b.Skip("set ASSAY_GROWTH=1: it takes minutes")
	}
	for _, nodes := range []int{1000, 10_000, 100_000} {
		for _, pending := range []int{100, 1000, 10_000, 100_000} {
			c := busyFleet(b, nodes, pending, 300)
			now := c.Fleet.View().Now().Unix()
			name := fmt.Sprintf("nodes=%d/pending=%d/", nodes, pending)
			b.Run(name+"plan", func(b *testing.B) {
				before := cpu(b)
				for b.Loop() {
					c.Replan(now)
				}
				b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
			})
			carryOut(b, c, c.Replan(now), now)
			var ids []string
			for r := range c.Fleet.Snapshot().Running() {
				ids = append(ids, r.ID)
			}
			b.Run(name+"event", func(b *testing.B) {
				var used time.Duration
				for b.Loop() {
					if len(ids) > 0 {
						c.Fleet.End(ids[0])
						ids = ids[1:]
					}
					before := cpu(b)
					starts := c.Event(now)
					used += cpu(b) - before
					carryOut(b, c, starts, now)
				}
				b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// BenchmarkMemory is what 100,000 nodes and 100,000 pending jobs take: what is live after a plan, and what the process has
// had from the system at the most.
func BenchmarkMemory(b *testing.B) {
	if os.Getenv("ASSAY_GROWTH") == "" {
		b.Skip("set ASSAY_GROWTH=1: it takes minutes")
	}
	for b.Loop() {
		c := busyFleet(b, 100_000, 100_000, 300)
		c.Replan(c.Fleet.View().Now().Unix())
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "live-MiB")
		b.ReportMetric(float64(m.Sys)/(1<<20), "system-MiB")
		runtime.KeepAlive(c)
	}
}

func carryOut(b *testing.B, c *Cycle, starts []Start, now int64) {
	b.Helper()
	for _, s := range starts {
		end := time.Unix(now+c.Queue.Limit(c.Queue.Job(s.ID)), 0)
		if err := c.Fleet.Start(&scheduler.Running{ID: ID(s.ID), Nodes: s.Plan.Nodes, Start: time.Unix(now, 0), End: end}); err != nil {
			b.Fatal(err)
		}
		if err := c.Queue.Start(s.ID, now); err != nil {
			b.Fatal(err)
		}
	}
}

// mixedSizes is the mix of gangs that Slurm was measured with: 600 of one node to 3 of 256.
func mixedSizes() []int {
	var sizes []int
	for i, n := range []int{600, 200, 150, 120, 80, 40, 16, 8, 3} {
		for range n {
			sizes = append(sizes, 1<<i)
		}
	}
	return sizes
}

const benchNodes = 10_000
