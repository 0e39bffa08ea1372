package backfill

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/scheduler"
)

// Removing all jobs behind J never makes J's planned start earlier; indeed it changes nothing about J.
func TestJobsBehindDelayNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, order := drawWorld(t)
		snap := f.Snapshot()
		o := DefaultOptions()
		all := Plan(snap, order, nil, o)
		check(t, snap, order, all)
		for i := range order {
			alone := Plan(snap, order[:i+1], nil, o)
			if got, want := decision(alone, order, i), decision(all, order, i); got != want {
				t.Fatalf("%s %s, and without those behind it %s", order[i].ID, want, got)
			}
		}
	})
}

// After any events an update keeps the same rules: nothing overlaps, those behind change nothing, and where work only
// ended early or on time and the clock moved on, nobody's planned start is later than it was, unless someone before was
// pulled forward onto the nodes.
func TestEventsOnlyPullForward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, order := drawWorld(t)
		o := DefaultOptions()
		before := Plan(f.Snapshot(), order, nil, o)
		now := epoch.Add(time.Duration(rapid.IntRange(0, 5400).Draw(t, "later")) * time.Second)
		good := true // nothing bad happened to the fleet
		var over []string
		for r := range f.View().Running() {
			// What should have ended and has not, takes time that nobody planned.
			if rapid.Bool().Draw(t, "ends") {
				over = append(over, r.ID)
			} else if !r.End.After(now) {
				good = false
			}
		}
		for _, id := range over {
			f.End(id)
		}
		f.Tick(now)
		for _, s := range before.Starts {
			if err := f.Start(&scheduler.Running{ID: order[s.Index].ID, Nodes: s.Plan.Nodes, Start: epoch, End: epoch.Add(order[s.Index].Gang.Limit)}); err != nil {
				good = false
			} else if !epoch.Add(order[s.Index].Gang.Limit).After(now) {
				good = false
			}
		}
		if rapid.IntRange(0, 4).Draw(t, "a node fails") == 0 {
			f.Bar(rapid.Int32Range(0, int32(f.View().Len())-1).Draw(t, "which"), scheduler.Bar{Why: "lost"})
			good = false
		}
		var rest []Job
		for i := range order {
			if f.Work(order[i].ID) == nil {
				rest = append(rest, order[i])
			}
		}
		snap := f.Snapshot()
		after := Update(snap, rest, nil, o, before)
		check(t, snap, rest, after)
		moved := false
		for i, j := range rest {
			alone := Update(snap, rest[:i+1], nil, o, before)
			if got, want := decision(alone, rest, i), decision(after, rest, i); got != want {
				t.Fatalf("%s %s, and without those behind it %s", j.ID, want, got)
			}
			was, planned := before.Planned[j.ID]
			is, still := after.Planned[j.ID]
			if planned && good && !moved && still && was.Start > now.Unix() && is.Start > was.Start {
				t.Fatalf("%s was planned at %d and now at %d", j.ID, was.Start, is.Start)
			}
			moved = moved || !planned || !still || was.Start != is.Start
		}
	})
}

// The same snapshot and order give the same schedule.
func TestPlanIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, order := drawWorld(t)
		snap := f.Snapshot()
		a, b := Plan(snap, order, nil, DefaultOptions()), Plan(snap, order, nil, DefaultOptions())
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%v\n%v", a, b)
		}
	})
}

// A planned start is the earliest slot: the gang fits in none before it, with those before it in place. The slow way: a
// snapshot for every slot, with all that is taken at any time of its run.
func TestPlannedStartIsTheEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, order := drawWorld(t)
		for i := range order {
			if order[i].Gang.Share.Kind != scheduler.NoShare {
				order[i].Gang.Share, order[i].Gang.GPUs = scheduler.Share{}, 1
			}
		}
		snap := f.Snapshot()
		o := Options{Depth: 1000, Window: 5 * 3600}
		s := Plan(snap, order, nil, o)
		p := newPass(snap, order, nil, o, nil)
		for i := range order {
			j := &order[i]
			is, planned := s.Planned[j.ID]
			first := int64(0)
			for slot := range p.times().grid.Slots() {
				at := p.times().grid.At(slot)
				if planned && at >= is.Start {
					break
				}
				if fitsBySlowWay(p, &j.Gang, slot) {
					first = at
					break
				}
			}
			started := false
			for _, x := range s.Starts {
				started = started || x.Index == i
			}
			switch {
			case first != 0 && !started:
				t.Fatalf("%s could start at %d: %s", j.ID, first-p.out.At, decision(s, order, i))
			case started && first != p.out.At:
				t.Fatalf("%s starts now, and the slow way says %d", j.ID, first)
			}
			// Put it in its place for those behind.
			for _, x := range s.Starts {
				if x.Index == i {
					p.start(i, j, x.Plan)
				}
			}
			if planned {
				p.plan(i, j, is)
			}
		}
	})
}

func fitsBySlowWay(p *pass, g *scheduler.Gang, slot int32) bool {
	at := p.times().grid.At(slot)
	end := p.times().end(at + scheduler.Seconds(g.Limit))
	f := p.idle.Edit()
	f.Tick(time.Unix(at, 0))
	var block []scheduler.Take
	for n := range int32(p.snap.Len()) {
		if taken := p.times().busy.All(n) &^ p.times().busy.Free(n, slot, end, 0); taken != 0 {
			block = append(block, scheduler.Take{Node: n, GPUs: taken})
		}
	}
	if len(block) > 0 {
		if err := f.Start(&scheduler.Running{ID: "block", Nodes: block}); err != nil {
			panic(err)
		}
	}
	late := *g
	late.Waited += time.Duration(at-p.out.At) * time.Second
	_, ok := scheduler.Find(f.View(), late)
	return ok
}
