package backfill

import (
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/timemap"
)

// times is who is free when, as a pass sees it.
type times struct {
	snap *scheduler.Snapshot
	grid *timemap.Grid
	busy *timemap.Map

	// Owners of claims: those that run, then reservations, then the jobs of the order.
	running      []*scheduler.Running
	reservations []scheduler.Reservation

	renew     bool
	certified []certified
	latest    map[need][]int32 // last slot in which a gang with such a need may start, by node
	allowed   map[[2]*scheduler.NodeSet][]bool
}

// certified is what a node's certificate says.
type certified struct {
	level           checks.Level
	issued, expires int64
}

// A need is what a gang needs of certificates.
type need struct {
	level     checks.Level
	remaining int64
	age       int64
}

func newTimes(snap *scheduler.Snapshot, o Options) *times {
	t := &times{snap: snap, renew: o.Renew, grid: timemap.NewGrid(snap.Now().Unix(), o.Window), latest: map[need][]int32{}, allowed: map[[2]*scheduler.NodeSet][]bool{}}
	gpus := make([]uint32, snap.Len())
	t.certified = make([]certified, snap.Len())
	for i := range gpus {
		n := snap.Node(int32(i))
		if n.Shape == nil || n.Bar != nil || n.Certificate.Level == checks.NoLevel {
			continue
		}
		gpus[i] = n.Shape.All() & n.Certificate.GPUs
		t.certified[i] = certified{n.Certificate.Level, n.Certificate.Issued.Unix(), n.Certificate.Expires.Unix()}
	}
	t.busy = timemap.New(t.grid, gpus)
	for r := range snap.Running() {
		t.running = append(t.running, r)
		to := t.grid.Slots()
		if !r.End.IsZero() {
			to = max(1, t.end(r.End.Unix())) // one that should have ended is there until the next slot at least
		}
		for _, take := range r.Nodes {
			t.busy.Add(take.Node, timemap.Claim{From: 0, To: to, GPUs: mask(take), Owner: timemap.Owner(len(t.running))})
		}
	}
	for _, r := range snap.Reservations() {
		t.reservations = append(t.reservations, r)
		owner := timemap.Owner(len(t.running) + len(t.reservations))
		from, to := max(0, t.grid.Down(r.Start.Unix())), t.grid.Slots()
		if !r.End.IsZero() {
			to = t.end(r.End.Unix())
		}
		if from < to {
			for _, n := range r.Nodes.Nodes() {
				t.busy.Add(n, timemap.Claim{From: from, To: to, GPUs: ^uint32(0), Owner: owner})
			}
		}
	}
	return t
}

// job is the owner of what job i of the order claims.
func (t *times) job(i int) timemap.Owner {
	return timemap.Owner(len(t.running) + len(t.reservations) + 1 + i)
}

// end is the slot up to which something lasts that ends at that second.
func (t *times) end(at int64) int32 { return t.grid.Up(at) }

func (t *times) claim(take scheduler.Take, from, to int32, owner timemap.Owner) {
	t.busy.Add(take.Node, timemap.Claim{From: max(0, from), To: to, GPUs: mask(take), Owner: owner})
}

// ask is what g needs of nodes over time.
func (t *times) ask(g *scheduler.Gang) timemap.Ask {
	a := timemap.Ask{GPUs: g.GPUs, Duration: scheduler.Seconds(g.Limit), Count: g.Nodes, Nodes: t.nodes(g), Latest: t.lastStarts(g)}
	if g.Whole {
		a.GPUs = 0
	}
	if a.Duration == 0 {
		a.Duration = t.grid.At(t.grid.Slots())
	}
	if g.Insists() && g.SwitchWait > 0 {
		a.Also = t.grid.Up(t.grid.At(0) + scheduler.Seconds(g.SwitchWait-g.Waited))
	}
	for i, r := range t.reservations {
		if r.Name == g.Reserved && g.Reserved != "" {
			a.Own = timemap.Owner(len(t.running) + 1 + i)
			a.From = t.grid.Up(r.Start.Unix())
		}
	}
	return a
}

// nodes says which nodes g may have at all; nil for all. Gangs of a partition share the answer.
func (t *times) nodes(g *scheduler.Gang) []bool {
	if len(g.Within) == 0 && len(g.Except) == 0 {
		return nil
	}
	var key [2]*scheduler.NodeSet
	common := len(g.Within) <= len(key) && len(g.Except) == 0
	if common {
		copy(key[:], g.Within)
		if ok, found := t.allowed[key]; found {
			return ok
		}
	}
	ok := make([]bool, t.snap.Len())
	for i := range ok {
		ok[i] = true
		for _, s := range g.Within {
			ok[i] = ok[i] && s.Has(int32(i))
		}
		for _, s := range g.Except {
			ok[i] = ok[i] && !s.Has(int32(i))
		}
	}
	if common {
		t.allowed[key] = ok
	}
	return ok
}

// lastStarts says up to which slot g may start on each node: its certificate must be deep enough, not too old, and hold so
// much longer. It cuts nothing that runs.
func (t *times) lastStarts(g *scheduler.Gang) []int32 {
	level, remaining := g.Needs()
	n := need{level, scheduler.Seconds(remaining), scheduler.Seconds(g.MaxAge)}
	if last, ok := t.latest[n]; ok {
		return last
	}
	last := make([]int32, len(t.certified))
	for i, c := range t.certified {
		at := c.expires - n.remaining
		if n.age > 0 {
			at = min(at, c.issued+n.age)
		}
		if last[i] = t.grid.Down(at); t.renew {
			last[i] = t.grid.Slots()
		}
		if c.level < n.level {
			last[i] = -1
		}
	}
	t.latest[n] = last
	return last
}

// promised reports whether, before slot end, one of those GPUs goes to a reservation or to a job of the order.
func (t *times) promised(node int32, gpus uint32, end int32) bool {
	promised := false
	t.busy.Each(node, 0, end, func(c timemap.Claim) {
		promised = promised || c.GPUs&gpus != 0 && int(c.Owner) > len(t.running)
	})
	return promised
}
