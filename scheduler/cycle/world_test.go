package cycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/backfill"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/quota"
	"github.com/assay-gpu/assay/scheduler/topo"
)

var eight = topo.NewShape("h100", 8, true)

// A world is a cycle whose decisions are carried out at once, as the simulator and the control plane do.
type world struct {
	c     *Cycle
	now   int64
	ends  map[int64]int64 // when victims in grace are gone, by job
	run   map[int64]int64 // how long a job really runs; absent: its limit
	likes map[int64]func(*scheduler.Gang)
	said  []string
}

// newWorld is leaves of nodes with eight GPUs under one spine, certified for a month.
func newWorld(t rapid.TB, leaves, perLeaf int, cfg queue.Config, specs []quota.Spec) *world {
	t.Helper()
	var b strings.Builder
	for l := range leaves {
		fmt.Fprintf(&b, "SwitchName=leaf%d Nodes=n[%02d-%02d]\n", l, l*perLeaf+1, (l+1)*perLeaf)
	}
	fmt.Fprintf(&b, "SwitchName=spine Switches=leaf[0-%d]\n", leaves-1)
	tree, faults := topo.Parse(b.String(), nil)
	if len(faults) > 0 {
		t.Fatalf("%v", faults)
	}
	start := time.Unix(1_800_000_000, 0).UTC()
	f := scheduler.NewFleet(tree, start)
	for i := range int32(len(tree.Nodes)) {
		if err := f.See(i, eight, 0); err != nil {
			t.Fatalf("%v", err)
		}
		f.Certify(i, scheduler.Certificate{Serial: uint64(i + 1), Level: checks.Standard, GPUs: eight.All(), Issued: start, Expires: start.Add(30 * 24 * time.Hour)})
	}
	accounts, err := quota.NewTree(specs)
	if err != nil {
		t.Fatalf("%v", err)
	}
	q, err := queue.New(cfg, accounts, start.Unix())
	if err != nil {
		t.Fatalf("%v", err)
	}
	w := &world{now: start.Unix(), ends: map[int64]int64{}, run: map[int64]int64{}, likes: map[int64]func(*scheduler.Gang){}}
	w.c = &Cycle{Queue: q, Fleet: f, Options: backfill.DefaultOptions(), Wishes: func(j *queue.Job, g *scheduler.Gang) {
		if like := w.likes[j.ID]; like != nil {
			like(g)
		}
	}}
	return w
}

func (w *world) say(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

// carry carries out starts.
func (w *world) carry(t rapid.TB, starts []Start) {
	t.Helper()
	for _, s := range starts {
		j := w.c.Queue.Job(s.ID)
		if by := w.c.Queue.Job(j.Behind); by != nil && by.State == queue.Pending {
			t.Fatalf("%d was pushed out for %d and comes back before that has started", s.ID, by.ID)
		}
		if err := scheduler.Fits(w.c.Fleet.View(), w.c.gang(w.c.Fleet.View(), j), s.Plan); err != nil {
			t.Fatalf("start %d: planner and applier disagree: %v", s.ID, err)
		}
		end := time.Unix(w.now+w.c.Queue.Limit(j), 0)
		if err := w.c.Fleet.Start(&scheduler.Running{ID: ID(s.ID), Nodes: s.Plan.Nodes, Start: time.Unix(w.now, 0), End: end}); err != nil {
			t.Fatalf("start %d: %v", s.ID, err)
		}
		if err := w.c.Queue.Start(s.ID, w.now); err != nil {
			t.Fatalf("%v", err)
		}
		w.say("%d starts on %s", s.ID, w.nodes(s.Plan.Nodes))
	}
}

// round is a plan or an event, and all that follows from it at this moment.
func (w *world) round(t rapid.TB, replan bool) {
	t.Helper()
	if replan {
		w.carry(t, w.c.Replan(w.now))
	} else {
		w.carry(t, w.c.Event(w.now))
	}
	for {
		before := w.c.Queue.Potential()
		p, ok := w.c.Push(w.now)
		if !ok {
			return
		}
		if !p.After.Less(p.Before) || fmt.Sprint(before) != fmt.Sprint(p.Before) {
			t.Fatalf("%d pushes out %v: the potential goes from %v (is %v) to %v", p.ID, p.Victims, p.Before, before, p.After)
		}
		var who []string
		now := false
		for _, v := range p.Victims {
			if !queue.Before(w.c.Queue.Key(p.ID, w.now), w.c.Queue.Key(v.ID, w.now)) && !w.c.Queue.Key(p.ID, w.now).Borrows {
				t.Fatalf("victim %d is not after %d in the order", v.ID, p.ID)
			}
			who = append(who, fmt.Sprint(v.ID))
			w.ends[v.ID] = v.By
			now = now || v.By <= w.now
		}
		w.say("%d pushes out %s for %s", p.ID, strings.Join(who, ", "), w.nodes(p.Plan.Nodes))
		if now {
			w.due(t)
			w.carry(t, w.c.Event(w.now))
		}
	}
}

// due ends what should end by now.
func (w *world) due(t rapid.TB) (ended int) {
	t.Helper()
	for _, id := range slices.Clone(w.c.Queue.Running()) {
		j := w.c.Queue.Job(id)
		state, at := queue.Completed, j.Start+w.c.Queue.Limit(j)
		if r, ok := w.run[id]; ok {
			at = j.Start + r
		}
		if by, ok := w.ends[id]; ok && by < at {
			state, at = queue.Preempted, by
		}
		if at <= w.now {
			w.end(t, id, queue.Ending{State: state, At: w.now})
			ended++
		}
	}
	return ended
}

func (w *world) end(t rapid.TB, id int64, e queue.Ending) {
	t.Helper()
	delete(w.ends, id)
	w.c.Fleet.End(ID(id))
	r, err := w.c.Queue.End(id, e)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if r.Requeued {
		w.say("%d is requeued: %s", id, e.State)
	} else {
		w.say("%d ends: %s", id, e.State)
	}
}

// nodes is a place as a hostlist, with the GPUs where they are not all.
func (w *world) nodes(takes []scheduler.Take) string {
	var names []string
	gpus := ""
	for _, t := range takes {
		names = append(names, w.c.Fleet.View().Node(t.Node).Name)
		if t.GPUs != eight.All() {
			gpus = fmt.Sprintf(" GPUs %#x", t.GPUs)
		}
	}
	slices.Sort(names)
	return hostlist.Compress(names) + gpus
}

func (w *world) take() string {
	s := strings.Join(w.said, "\n")
	w.said = nil
	return s
}
