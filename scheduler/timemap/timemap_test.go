package timemap

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSlots(t *testing.T) {
	g := NewGrid(10*3600+30, 7*24*3600) // half a minute past ten
	for _, x := range []struct {
		name     string
		at       int64
		up, down int32
	}{
		{"now", 36030, 0, 0},
		{"a second later", 36031, 1, 0},
		{"the next whole minute", 36060, 1, 1},
		{"59 minutes later", 36060 + 58*60, 59, 59},
		{"before now", 36000, 0, -1},
		{"beyond the window", 36030 + 8*24*3600, g.Slots(), g.Slots()},
	} {
		if up, down := g.Up(x.at), g.Down(x.at); up != x.up || down != x.down {
			t.Errorf("%s: up %d, down %d; want %d and %d", x.name, up, down, x.up, x.down)
		}
	}
	length := func(t int64) int64 { i := g.Down(t); return g.At(i+1) - g.At(i) }
	for _, x := range []struct {
		name string
		at   int64
		want int64
	}{
		{"in the first hour", 36030 + 1800, 60}, {"in the second", 36030 + 5400, 300}, {"on the first day", 36030 + 23*3600, 300}, {"on the second", 36030 + 30*3600, 3600},
	} {
		if got := length(x.at); got != x.want {
			t.Errorf("a slot %s lasts %d s, want %d", x.name, got, x.want)
		}
	}
	if n := g.Slots(); n < 470 || n > 490 {
		t.Errorf("a week has %d slots, want about 60 + 276 + 144", n)
	}
}

// drawMap is a small map with claims of owners 1 to 12.
func drawMap(t *rapid.T) *Map {
	g := NewGrid(rapid.Int64Range(0, 7200).Draw(t, "now"), rapid.Int64Range(600, 30000).Draw(t, "window"))
	all := make([]uint32, rapid.IntRange(1, 6).Draw(t, "nodes"))
	for i := range all {
		all[i] = rapid.SampledFrom([]uint32{0, 1, 0xf, 0xff}).Draw(t, "gpus")
	}
	m := New(g, all)
	for owner := range Owner(rapid.IntRange(0, 12).Draw(t, "claims")) {
		from := rapid.Int32Range(0, g.Slots()-1).Draw(t, "from")
		m.Add(rapid.Int32Range(0, int32(len(all))-1).Draw(t, "node"), Claim{From: from, To: rapid.Int32Range(from+1, g.Slots()).Draw(t, "to"),
			GPUs: rapid.Uint32Range(1, 0xff).Draw(t, "mask"), Owner: owner + 1})
	}
	return m
}

// Sweep finds the first slot that trying every slot and every node finds, shows the same nodes, and calls again at every
// slot at which a node is gained.
func TestSweepAgainstTryingEverySlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMap(t)
		g := m.Grid()
		a := Ask{GPUs: rapid.SampledFrom([]int{0, 1, 2, 4, 8}).Draw(t, "need"), Duration: rapid.Int64Range(1, 20000).Draw(t, "duration"),
			From: rapid.Int32Range(0, 3).Draw(t, "from"), Until: rapid.Int32Range(0, g.Slots()).Draw(t, "until"), Own: Owner(rapid.IntRange(0, 12).Draw(t, "own")),
			Count: rapid.IntRange(1, m.Nodes()).Draw(t, "count")}
		latest := make([]int32, m.Nodes())
		for i := range latest {
			latest[i] = rapid.Int32Range(-1, g.Slots()).Draw(t, "latest")
		}
		a.Latest = latest
		free := func(s int32) []int32 {
			end := g.Up(g.At(s) + a.Duration)
			var nodes []int32
			for n := range int32(m.Nodes()) {
				need := a.GPUs
				if need == 0 {
					need = bits.OnesCount32(m.All(n))
				}
				if need > 0 && s <= latest[n] && bits.OnesCount32(m.Free(n, s, end, a.Own)) >= need {
					nodes = append(nodes, n)
				}
			}
			return nodes
		}
		stop := rapid.Int32Range(0, g.Slots()).Draw(t, "content from")
		var seen []int32
		slot, ok := m.Sweep(a, func(f Fit) bool {
			var got []int32
			for n := range int32(m.Nodes()) {
				if f.Free[n>>6]>>(n&63)&1 == 1 {
					got = append(got, n)
				}
			}
			if want := free(f.Slot); !slices.Equal(got, want) || f.Count != len(want) {
				t.Fatalf("slot %d: nodes %v (%d), want %v", f.Slot, got, f.Count, want)
			}
			if f.End != g.Up(g.At(f.Slot)+a.Duration) {
				t.Fatalf("slot %d ends at %d", f.Slot, f.End)
			}
			seen = append(seen, f.Slot)
			return f.Slot >= stop
		})
		// Where enough are free, and the set is not one that was shown before at the end of an unbroken run of slots, it
		// must have been shown.
		var before []int32
		for s := a.From; s <= min(a.Until, g.Slots()-1); s++ {
			now := free(s)
			gained := slices.ContainsFunc(now, func(n int32) bool { return !slices.Contains(before, n) })
			if len(now) >= a.Count && gained && !slices.Contains(seen, s) && (!ok || s <= slot) {
				t.Fatalf("slot %d has %v and was not shown; shown: %v", s, now, seen)
			}
			before = now
		}
		if ok && slot < stop {
			t.Fatalf("stopped at %d before %d", slot, stop)
		}
	})
}

// Now is what Sweep says of the first slot.
func TestNowIsTheFirstSlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMap(t)
		a := Ask{GPUs: rapid.SampledFrom([]int{0, 1, 4, 8}).Draw(t, "need"), Duration: rapid.Int64Range(1, 20000).Draw(t, "duration"),
			Count: rapid.IntRange(1, m.Nodes()).Draw(t, "count")}
		for range 3 { // the second time, those that were busy are no longer looked at
			a.Own = Owner(rapid.IntRange(0, 3).Draw(t, "own"))
			fit, ok := m.Now(a)
			fit.Free = slices.Clone(fit.Free)
			if !ok {
				fit.Free = nil
			}
			_, want := m.Sweep(a, func(f Fit) bool {
				if !slices.Equal(f.Free, fit.Free) || f.Count != fit.Count || f.End != fit.End {
					t.Fatalf("now: %+v, by sweep %+v", fit, f)
				}
				return true
			})
			if ok != want {
				t.Fatalf("now: %v, by sweep %v", ok, want)
			}
		}
	})
}

func TestWhatItWaitedFor(t *testing.T) {
	m := New(NewGrid(0, 3600), []uint32{0xff})
	m.Add(0, Claim{From: 0, To: 5, GPUs: 0x0f, Owner: 1})
	m.Add(0, Claim{From: 0, To: 9, GPUs: 0xf0, Owner: 2})
	m.Add(0, Claim{From: 5, To: 7, GPUs: 0x0f, Owner: 3})
	if c, ok := m.Last(0, 10, 0x0f); !ok || c.Owner != 3 {
		t.Errorf("GPUs 0-3: %+v; want owner 3: 2 has other GPUs", c)
	}
	if c, ok := m.Last(0, 6, 0x0f); !ok || c.Owner != 1 {
		t.Errorf("at slot 6: %+v; want owner 1: 3 has not ended", c)
	}
	if _, ok := m.Last(0, 4, 0xff); ok {
		t.Error("at slot 4 nothing has ended")
	}
	if f := m.Free(0, 0, 6, 2); f != 0xf0 {
		t.Errorf("free for owner 2: %#x", f)
	}
}

// Asked about one slot alone, Sweep says what the claims say.
func TestEverySlotAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMap(t)
		a := Ask{GPUs: rapid.SampledFrom([]int{0, 1, 4}).Draw(t, "need"), Duration: rapid.Int64Range(1, 8000).Draw(t, "duration"), Count: 1}
		for node := range int32(m.Nodes()) {
			a.Nodes = make([]bool, m.Nodes())
			a.Nodes[node] = true
			need := a.GPUs
			if need == 0 {
				need = bits.OnesCount32(m.All(node))
			}
			for s := range m.Grid().Slots() {
				a.From, a.Until = s, s
				_, got := m.Sweep(a, func(Fit) bool { return true })
				end := m.Grid().Up(m.Grid().At(s) + a.Duration)
				if want := need > 0 && bits.OnesCount32(m.Free(node, s, end, 0)) >= need; got != want {
					t.Fatalf("node %d, slot %d: %v, want %v", node, s, got, want)
				}
			}
		}
	})
}
