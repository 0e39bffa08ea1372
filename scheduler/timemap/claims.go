package timemap

import "slices"

// A Claim is the taking of GPUs of one node from slot From to slot To, To not included.
type Claim struct {
	From, To int32
	GPUs     uint32 // mask
	Owner    int32  // whose it is; a number of the caller's
	Rank     int32  // place in the order of jobs; -1 for what runs and for reservations, which nobody passes
}

// Fixed is the rank of claims that every job must respect.
const Fixed int32 = -1

// A Map is all claims on all nodes.
type Map struct {
	grid   *Grid
	all    []uint32  // by node: its GPUs; 0: out of service
	claims [][]Claim // by node, by From
	arena  []Claim   // where the first claims of nodes lie: one allocation for all

	ends  []int32 // scratch of Sweep
	sweep sweepScratch
}

// New is a map in which all are free. gpus holds each node's mask; 0 for a node out of service.
func New(g *Grid, gpus []uint32) *Map {
	m := &Map{grid: g, all: gpus, claims: make([][]Claim, len(gpus)), arena: make([]Claim, 2*len(gpus))}
	for i := range m.claims {
		m.claims[i] = m.arena[2*i : 2*i : 2*i+2]
	}
	return m
}

// Grid is the map's slots.
func (m *Map) Grid() *Grid { return m.grid }

// Nodes is how many nodes there are.
func (m *Map) Nodes() int { return len(m.all) }

// All is the mask of node's GPUs.
func (m *Map) All(node int32) uint32 { return m.all[node] }

// Add claims GPUs of a node.
func (m *Map) Add(node int32, c Claim) {
	cs := m.claims[node]
	i := len(cs)
	for i > 0 && cs[i-1].From > c.From {
		i--
	}
	m.claims[node] = slices.Insert(cs, i, c)
}

// Drop takes back all claims of an owner on a node.
func (m *Map) Drop(node, owner int32) {
	m.claims[node] = slices.DeleteFunc(m.claims[node], func(c Claim) bool { return c.Owner == owner })
}

// Free is the GPUs of a node that no claim of a rank below rank takes between slots from and to.
func (m *Map) Free(node, from, to, rank int32) uint32 {
	f := m.all[node]
	for _, c := range m.claims[node] {
		if c.From >= to {
			break
		}
		if c.To > from && c.Rank < rank {
			f &^= c.GPUs
		}
	}
	return f
}

// Over calls f for each claim of a rank above rank on those GPUs between from and to: whom a job pushes aside that goes
// before them.
func (m *Map) Over(node, from, to int32, gpus uint32, rank int32, f func(Claim)) {
	for _, c := range m.claims[node] {
		if c.From < to && c.To > from && c.Rank > rank && c.GPUs&gpus != 0 {
			f(c)
		}
	}
}

// Last is the claim on those GPUs of a node, of a rank below rank, that ends last at slot at or before: what a job that
// starts there waited for.
func (m *Map) Last(node, at int32, gpus uint32, rank int32) (Claim, bool) {
	var last Claim
	found := false
	for _, c := range m.claims[node] {
		if c.To <= at && c.Rank < rank && c.GPUs&gpus != 0 && (!found || c.To > last.To) {
			last, found = c, true
		}
	}
	return last, found
}
