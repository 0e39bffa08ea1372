package backfill

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// epoch is when the tests take place.
var epoch = time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC)

var eight = topo.NewShape("h100", 8, true)

// newFleet is leaves of so many nodes under one spine, all certified for that long.
func newFleet(t rapid.TB, leaves, perLeaf int, valid time.Duration) *scheduler.Fleet {
	t.Helper()
	var b strings.Builder
	for l := range leaves {
		fmt.Fprintf(&b, "SwitchName=leaf%d Nodes=n[%d-%d]\n", l, l*perLeaf+1, (l+1)*perLeaf)
	}
	fmt.Fprintf(&b, "SwitchName=spine Switches=leaf[0-%d]\n", leaves-1)
	tree, faults := topo.Parse(b.String(), nil)
	if len(faults) > 0 {
		t.Fatalf("%v", faults)
	}
	f := scheduler.NewFleet(tree, epoch)
	for i := range int32(len(tree.Nodes)) {
		if err := f.See(i, eight, 0); err != nil {
			t.Fatalf("%v", err)
		}
		f.Certify(i, scheduler.Certificate{Serial: uint64(i + 1), Level: checks.Standard, GPUs: eight.All(), Issued: epoch, Expires: epoch.Add(valid)})
	}
	return f
}

// run starts work on random free nodes, for a random time.
func run(t *rapid.T, f *scheduler.Fleet, id string) {
	g := drawGang(t, id)
	if p, ok := scheduler.Find(f.View(), g); ok {
		end := epoch.Add(time.Duration(rapid.IntRange(-600, 20000).Draw(t, "ends in")) * time.Second)
		if err := f.Start(&scheduler.Running{ID: id, Nodes: p.Nodes, Start: epoch.Add(-time.Hour), End: end}); err != nil {
			t.Fatal(err)
		}
	}
}

func drawGang(t *rapid.T, id string) scheduler.Gang {
	g := scheduler.Gang{ID: id, Nodes: rapid.IntRange(1, 6).Draw(t, "nodes"), Limit: time.Duration(rapid.IntRange(1, 300).Draw(t, "minutes")) * time.Minute}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		g.GPUs = rapid.IntRange(1, 8).Draw(t, "gpus")
	case 1:
		g.Near = scheduler.Required
	case 2:
		g.Switches, g.SwitchWait = 1, time.Duration(rapid.IntRange(0, 120).Draw(t, "insists"))*time.Minute
	case 3:
		g.Nodes, g.Share = 1, scheduler.Share{Kind: scheduler.MPS, Amount: rapid.IntRange(10, 100).Draw(t, "percent")}
	}
	return g
}

// drawWorld is a fleet with work, sick nodes, reservations, and an order of jobs.
func drawWorld(t *rapid.T) (*scheduler.Fleet, []Job) {
	f := newFleet(t, rapid.IntRange(1, 3).Draw(t, "leaves"), rapid.IntRange(1, 4).Draw(t, "nodes a leaf"), time.Duration(rapid.IntRange(1, 48).Draw(t, "valid"))*time.Hour)
	for i := range rapid.IntRange(0, 6).Draw(t, "running") {
		run(t, f, fmt.Sprint("r", i))
	}
	n := int32(f.View().Len())
	node := rapid.Int32Range(0, n-1)
	for range rapid.IntRange(0, 2).Draw(t, "sick") {
		f.Bar(node.Draw(t, "which"), scheduler.Bar{Why: "quarantined"})
	}
	if rapid.Bool().Draw(t, "uncertified") {
		f.Revoke(node.Draw(t, "which"))
	}
	if rapid.Bool().Draw(t, "maintenance") {
		start := epoch.Add(time.Duration(rapid.IntRange(-30, 300).Draw(t, "from")) * time.Minute)
		f.Reserve(scheduler.Reservation{Name: "maint", Start: start, End: start.Add(2 * time.Hour), Nobody: true, Nodes: f.View().Set(node.Draw(t, "which"))})
	}
	order := make([]Job, rapid.IntRange(1, 12).Draw(t, "jobs"))
	for i := range order {
		id := fmt.Sprint("j", i)
		order[i] = Job{ID: id, Gang: drawGang(t, id)}
	}
	return f, order
}

// decision is what a schedule says of one job.
func decision(s *Schedule, order []Job, i int) string {
	for _, x := range s.Starts {
		if x.Index == i {
			return fmt.Sprint("starts on ", x.Plan.Nodes)
		}
	}
	if p, ok := s.Planned[order[i].ID]; ok {
		return fmt.Sprint("planned at ", p.Start, " on ", p.Nodes, " cause ", p.Cause)
	}
	return "waits"
}

// check fails the test where two have the same GPU at one time, or someone starts without a certificate.
func check(t rapid.TB, snap *scheduler.Snapshot, order []Job, s *Schedule) {
	t.Helper()
	type hold struct {
		who      string
		from, to int64
		take     scheduler.Take
		ours     bool
	}
	var holds []hold
	now := snap.Now().Unix()
	for r := range snap.Running() {
		for _, n := range r.Nodes {
			holds = append(holds, hold{r.ID, now, max(now+1, r.End.Unix()), n, false})
		}
	}
	for _, r := range snap.Reservations() {
		for _, n := range r.Nodes.Nodes() {
			holds = append(holds, hold{r.Name, r.Start.Unix(), r.End.Unix(), scheduler.Take{Node: n, GPUs: 0xff}, false})
		}
	}
	add := func(j *Job, start int64, nodes []scheduler.Take) {
		if len(nodes) != j.Gang.Nodes {
			t.Fatalf("%s has %d of %d nodes: part of a gang", j.ID, len(nodes), j.Gang.Nodes)
		}
		_, remaining := j.Gang.Needs()
		for _, n := range nodes {
			node := snap.Node(n.Node)
			if node.Bar != nil || node.Certificate.Level == checks.NoLevel || node.Certificate.Expires.Unix() < start+scheduler.Seconds(remaining) {
				t.Fatalf("%s starts at %d on %s, which is barred, uncertified or lapses", j.ID, start, node.Name)
			}
			holds = append(holds, hold{j.ID, start, start + scheduler.Seconds(j.Gang.Limit), n, true})
		}
	}
	for _, x := range s.Starts {
		add(&order[x.Index], now, x.Plan.Nodes)
	}
	for i := range order {
		if p, ok := s.Planned[order[i].ID]; ok {
			if p.Start <= now {
				t.Fatalf("%s planned at %d, now is %d", p.ID, p.Start, now)
			}
			add(&order[i], p.Start, p.Nodes)
		}
	}
	for i, a := range holds {
		for _, b := range holds[:i] {
			shared := a.take.Part.Kind != scheduler.NoShare && b.take.Part.Kind != scheduler.NoShare
			if (a.ours || b.ours) && a.take.Node == b.take.Node && !shared && mask(a.take)&mask(b.take) != 0 && a.from < b.to && b.from < a.to {
				t.Fatalf("%s and %s have GPUs %#x of node %d: [%d,%d) and [%d,%d)", a.who, b.who, mask(a.take)&mask(b.take), a.take.Node, a.from, a.to, b.from, b.to)
			}
		}
	}
}
