package timemap

import "sort"

// The slots: how long they are, and up to what distance from now.
const (
	fine, fineUntil     = 60, 3600
	middle, middleUntil = 300, 24 * 3600
	coarse              = 3600
)

// A Grid is the slots of one plan. Slot i lasts from At(i) to At(i+1). Slot 0 begins now; the others begin at whole
// minutes, five minutes and hours, so that two plans made one after the other agree on them.
type Grid struct{ at []int64 }

// NewGrid cuts the time from now to now+window, in seconds.
func NewGrid(now, window int64) *Grid {
	g := &Grid{at: []int64{now}}
	t := now
	for t < now+window {
		step := int64(fine)
		switch {
		case t-now >= middleUntil:
			step = coarse
		case t-now >= fineUntil:
			step = middle
		}
		t = (t/step + 1) * step
		g.at = append(g.at, t)
	}
	return g
}

// Slots is how many slots there are. Slot number Slots is the end of the window: what lasts until then has no end.
func (g *Grid) Slots() int32 { return int32(len(g.at) - 1) }

// At is the second at which slot i begins.
func (g *Grid) At(i int32) int64 { return g.at[i] }

// Up is the first slot that begins at t or later, and Slots for what lies beyond the window.
func (g *Grid) Up(t int64) int32 {
	return min(int32(sort.Search(len(g.at), func(i int) bool { return g.at[i] >= t })), g.Slots())
}

// Down is the slot in which t lies: the last that begins at t or before. It is -1 for what lies before now.
func (g *Grid) Down(t int64) int32 {
	return int32(sort.Search(len(g.at), func(i int) bool { return g.at[i] > t })) - 1
}

// A course says where jobs of one duration end, rounded against them.
type course struct {
	ends []int32 // by the slot of the start; a job that would end beyond the window ends with it
	last []int32 // by the slot of an end: the last start whose job ends by then, or -1
}

func (g *Grid) course(duration int64) course {
	n := g.Slots()
	c := course{ends: make([]int32, n), last: make([]int32, n+1)}
	e := int32(0)
	for s := range n {
		for e < n && g.at[e] < g.at[s]+duration {
			e++
		}
		c.ends[s] = e
	}
	s := int32(0)
	for e := range n + 1 {
		for s < n && c.ends[s] <= e {
			s++
		}
		c.last[e] = s - 1
	}
	return c
}
