package scheduler

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler/topo"
)

var shapes = []*topo.Shape{
	eight,
	topo.NewShape("pcie4", 4, false),
	topo.Pairs("pairs4", 4, []int{0, 2}, []int{1, 3}),
	topo.NewShape("cpu", 0, false),
	func() *topo.Shape { s := topo.NewShape("a100mig", 8, true); s.MIG, s.Memory = 0b11, 80; return s }(),
	func() *topo.Shape { s := topo.NewShape("l40s", 4, false); s.Memory, s.Shards = 48, 4; return s }(),
}

// anyGang draws a gang; not every one is valid.
func anyGang(t *rapid.T, id string) Gang {
	g := Gang{
		ID: id, Nodes: rapid.SampledFrom([]int{1, 1, 2, 2, 3, 4, 6}).Draw(t, "nodes"), GPUs: rapid.SampledFrom([]int{0, 0, 8, 4, 4, 2, 2, 1, 1}).Draw(t, "gpus"),
		Limit: rapid.SampledFrom([]time.Duration{0, 10 * time.Minute, 3 * time.Hour}).Draw(t, "limit"),
		Level: rapid.SampledFrom([]checks.Level{checks.NoLevel, checks.NoLevel, checks.Standard}).Draw(t, "level"),
		Near:  rapid.SampledFrom([]Nearness{Closest, Closest, Required, Preferred, Anywhere}).Draw(t, "near"),
	}
	switch rapid.IntRange(0, 12).Draw(t, "kind") {
	case 0:
		g.Switches = rapid.IntRange(1, 3).Draw(t, "switches")
	case 1:
		g.Segment, g.SegmentHeight = rapid.IntRange(1, 3).Draw(t, "segment"), rapid.IntRange(0, 1).Draw(t, "segment height")
	case 2:
		g.Group = 2
	case 3:
		g.PerLeaf = rapid.IntRange(1, 3).Draw(t, "per leaf")
	case 4:
		g.GPUs, g.Share = 0, rapid.SampledFrom([]Share{{Kind: MPS, Amount: 30}, {Kind: Shard, Amount: 1}, {Kind: MIG, Profile: "1g.10gb"}, {Kind: MIG, Profile: "3g.40gb"}}).Draw(t, "share")
	case 5:
		g.SameGrade = true
	case 6:
		g.MaxAge = time.Hour
	case 7:
		g.Spread = true
	case 8:
		g.Through = true
	case 9:
		g.Joined = 2
	case 10:
		g.Segment, g.Group = 2, 2
	case 11:
		g.Reserved = "mine"
	}
	return g
}

// TestWalk plays random histories of a fleet. After each step the snapshot kept by events equals one rebuilt from its
// facts; a snapshot handed out before has not changed; and every place that Place finds is whole, certified for long
// enough, free, and fits by Fits.
func TestWalk(t *testing.T) {
	asked, had, moved := 0, 0, 0
	defer func() {
		t.Logf("%d gangs placed of %d, %d swaps", had, asked, moved)
		if had < asked/10 || moved == 0 {
			t.Errorf("only %d gangs of %d were placed, and %d swapped: the walk proves little", had, asked, moved)
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 6).Draw(t, "leaves")
		sizes[0]++ // a tree has a node
		if rapid.IntRange(0, 20).Draw(t, "wide") == 0 {
			sizes[0] += 70 // more than one cell
		}
		tr := treeOf(sizes, rapid.IntRange(1, 3).Draw(t, "aggs"), rapid.IntRange(0, 3).Draw(t, "domain"))
		f := NewFleet(tr, epoch)
		node := rapid.Int32Range(0, int32(len(tr.Nodes)-1))
		for i := range int32(len(tr.Nodes)) {
			if rapid.IntRange(0, 9).Draw(t, "seen") > 0 {
				if err := f.See(i, shapes[rapid.IntRange(0, len(shapes)-1).Draw(t, "shape")], uint8(rapid.IntRange(0, 2).Draw(t, "grade"))); err != nil {
					t.Fatal(err)
				}
				certify(t, f, i)
			}
		}
		var ids []string
		gangs := map[string]Gang{}
		for step := range rapid.IntRange(1, 25).Draw(t, "steps") {
			before := f.Snapshot()
			facts := rebuilt(t, before)
			switch rapid.IntRange(0, 16).Draw(t, "event") {
			case 0:
				certify(t, f, node.Draw(t, "node"))
			case 1:
				f.Revoke(node.Draw(t, "node"))
			case 2:
				f.Bar(node.Draw(t, "node"), Bar{Why: "lost"})
			case 3:
				f.Unbar(node.Draw(t, "node"))
			case 4:
				f.Tick(f.View().Now().Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "minutes")) * time.Minute))
			case 5:
				if len(ids) > 0 {
					i := rapid.IntRange(0, len(ids)-1).Draw(t, "end")
					if !f.End(ids[i]) {
						t.Fatalf("%s was running and could not end", ids[i])
					}
					ids = append(ids[:i], ids[i+1:]...)
				}
			case 6:
				r := Reservation{Name: rapid.SampledFrom([]string{"mine", "maint"}).Draw(t, "reservation"), Start: f.View().Now(), End: f.View().Now().Add(5 * time.Hour)}
				r.Nodes = f.View().Set(node.Draw(t, "node"), node.Draw(t, "node"))
				f.Reserve(r)
			default:
				g := anyGang(t, fmt.Sprint("g", step))
				p := Place(before, g)
				asked++
				if again := Place(facts.View(), g); !reflect.DeepEqual(again, p) {
					t.Fatalf("%+v: placed %v, and on the rebuilt snapshot %v", g, p, again)
				}
				if !p.OK() {
					refused(t, before, g, p)
					break
				}
				had++
				placed(t, before, g, p)
				if err := f.Start(&Running{ID: g.ID, Nodes: p.Nodes, Start: f.View().Now()}); err != nil {
					t.Fatalf("%+v: %v does not start: %v", g, p, err)
				}
				ids = append(ids, g.ID)
				gangs[g.ID] = g
			}
			same(t, f.View(), rebuilt(t, f.View()).View())
			same(t, before, facts.View())
		}
		saved := f.View().Save()
		back, err := Load(saved)
		if err != nil {
			t.Fatalf("%v\n%s", err, saved)
		}
		same(t, back, f.View())
		if back.Fingerprint() != f.View().Fingerprint() {
			t.Fatalf("the fingerprint changed:\n%s\n%s", saved, back.Save())
		}
		if len(ids) > 0 {
			if swapped(t, f, ids[0], gangs[ids[0]]) {
				moved++
			}
		}
	})
}

func certify(t *rapid.T, f *Fleet, i int32) {
	n := f.View().Node(i)
	if n.Shape == nil {
		return
	}
	c := Certificate{
		Serial: 1, Level: rapid.SampledFrom([]checks.Level{checks.Quick, checks.Standard, checks.Quick, checks.Standard, checks.QuickMIG}).Draw(t, "level"),
		GPUs:   n.Shape.All() &^ (1 << rapid.SampledFrom([]int{31, 31, 31, 31, 31, 31, 31, 0, 1}).Draw(t, "uncovered")),
		Issued: f.View().Now().Add(-time.Duration(rapid.IntRange(0, 150).Draw(t, "age")) * time.Minute),
	}
	c.Expires = c.Issued.Add(6 * time.Hour)
	f.Certify(i, c)
}

// placed checks what must hold of a place, from the facts alone.
func placed(t *rapid.T, s *Snapshot, g Gang, p Plan) {
	t.Helper()
	if len(p.Nodes) != g.Nodes {
		t.Fatalf("%+v: %d nodes", g, len(p.Nodes))
	}
	if err := Fits(s, g, p); err != nil {
		t.Fatalf("%+v: placed on %v, but: %v", g, p.Nodes, err)
	}
	for _, x := range p.Nodes {
		n := s.Node(x.Node)
		lasts := n.Certificate.Expires.Sub(s.Now())
		if n.Bar != nil || n.Certificate.Level < g.level() || lasts < g.remaining() || x.GPUs&^n.Certificate.GPUs != 0 || x.GPUs&^n.Free != 0 {
			t.Fatalf("%+v: placed on %s: %+v, take %+v", g, n.Name, n, x)
		}
	}
}

// refused checks a refusal against the facts of each node: every node is counted once, and as fitting only if it could be
// had alone.
func refused(t *rapid.T, s *Snapshot, g Gang, p Plan) {
	t.Helper()
	r := p.Refused
	if r == nil {
		t.Fatalf("%+v: refused without a reason", g)
	}
	if s.Why(g, r) == "" {
		t.Fatalf("%+v: %+v has no words", g, r)
	}
	if r.Invalid != "" {
		return
	}
	sum := 0
	for _, n := range r.Counts {
		sum += n
	}
	fit := 0
	for i := range int32(s.Len()) {
		one := Gang{ID: "one", Nodes: 1, GPUs: g.GPUs, Whole: g.Whole, Share: g.Share, Limit: g.Limit, Level: g.Level, MaxAge: g.MaxAge, Through: g.Through, Joined: g.Joined, Reserved: g.Reserved}
		one.Within = []*NodeSet{s.Set(i)}
		if _, ok := Find(s, one); ok {
			fit++
		}
	}
	if sum != s.Len() || fit != r.Fit {
		t.Fatalf("%+v: %d nodes, counted %+v; %d fit alone", g, s.Len(), r, fit)
	}
}

// swapped takes a node from the gang and looks for another. What Swap finds must keep what Place promised, leave the
// other ranks where they are, and never be the node that was lost.
func swapped(t *rapid.T, f *Fleet, id string, g Gang) bool {
	t.Helper()
	held := f.Work(id).Nodes
	k := rapid.IntRange(0, len(held)-1).Draw(t, "lost")
	f.Bar(held[k].Node, Bar{Why: "lost"})
	p := Swap(f.View(), g, held, []int32{held[k].Node})
	if !p.OK() {
		if p.Refused == nil {
			t.Fatalf("%+v: no swap and no reason", g)
		}
		return false
	}
	if err := fits(f.View(), g, p, held); err != nil {
		t.Fatalf("%+v on %v: swapped to %v, but: %v", g, held, p.Nodes, err)
	}
	for i := range held {
		if (i == k) == reflect.DeepEqual(p.Nodes[i], held[i]) {
			t.Fatalf("%+v: rank %d: had %v, has %v, lost %d", g, i, held[i], p.Nodes[i], k)
		}
	}
	f.End(id)
	if err := f.Start(&Running{ID: id, Nodes: p.Nodes}); err != nil {
		t.Fatal(err)
	}
	return true
}

// FuzzLoad reads anything: what is a saved snapshot comes back the same, and answers.
func FuzzLoad(f *testing.F) {
	fl := certified(f, treeOf([]int{2, 3}, 1, 2), shapes[4])
	fl.Bar(1, Bar{Why: "lost", Since: epoch, By: "alice"})
	fl.Reserve(Reservation{Name: "maint", Start: epoch, Nodes: fl.View().Set(2), Nobody: true})
	if err := fl.Start(&Running{ID: "a", Nodes: []Take{{Node: 0, GPUs: 0b100}, {Node: 3, Part: Part{Kind: MIG, Slots: 1, Units: 1, Memory: 10}}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(fl.View().Save())
	f.Add([]byte(`{"version":1,"topology":"SwitchName=a Nodes=n1","order":["n1"],"shapes":[{"gpus":40}],"nodes":[{"n":0,"s":0}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Load(data)
		if err != nil {
			return
		}
		saved := s.Save()
		again, err := Load(saved)
		if err != nil {
			t.Fatalf("%v\n%s", err, saved)
		}
		if string(again.Save()) != string(saved) {
			t.Fatalf("%s came back as %s", saved, again.Save())
		}
		for _, g := range []Gang{{ID: "g", Nodes: 2}, {ID: "g", Nodes: 1, Share: Share{Kind: MIG, Profile: "1g.10gb"}}} {
			if p := Place(s, g); p.OK() {
				if err := Fits(s, g, p); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
