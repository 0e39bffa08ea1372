package timemap

import "slices"

// An Owner is whose a claim is; a number of the caller's, 0 for nobody's.
type Owner int32

// A Claim is the taking of GPUs of one node from slot From to slot To, To not included.
type Claim struct {
	From, To int32
	GPUs     uint32 // mask
	Owner    Owner
}

// A Map is all claims on all nodes.
type Map struct {
	grid   *Grid
	all    []uint32  // by node: its GPUs; 0: out of service
	claims [][]Claim // by node, by From
	arena  []Claim   // where the first claims of nodes lie: one allocation for all

	idle []int32 // nodes that had a free GPU in slot 0 when last looked at

	courses map[int64]course // by duration
	sweep   sweepScratch
}

// New is a map in which all are free. gpus holds each node's mask; 0 for a node out of service.
func New(g *Grid, gpus []uint32) *Map {
	m := &Map{grid: g, courses: map[int64]course{}, all: gpus, claims: make([][]Claim, len(gpus)), arena: make([]Claim, 2*len(gpus))}
	for i := range m.claims {
		m.claims[i] = m.arena[2*i : 2*i : 2*i+2]
		m.idle = append(m.idle, int32(i))
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

// Free is the GPUs of a node that no claim takes between slots from and to, but for claims of owner own.
func (m *Map) Free(node, from, to int32, own Owner) uint32 {
	f := m.all[node]
	for _, c := range m.claims[node] {
		if c.From >= to {
			break
		}
		if c.To > from && (own == 0 || c.Owner != own) {
			f &^= c.GPUs
		}
	}
	return f
}

// Last is the claim on those GPUs of a node that ends last at slot at or before: what a job that starts there waited for.
func (m *Map) Last(node, at int32, gpus uint32) (Claim, bool) {
	var last Claim
	found := false
	for _, c := range m.claims[node] {
		if c.To <= at && c.GPUs&gpus != 0 && (!found || c.To > last.To) {
			last, found = c, true
		}
	}
	return last, found
}

// Each calls f for each claim on a node between slots from and to.
func (m *Map) Each(node, from, to int32, f func(Claim)) {
	for _, c := range m.claims[node] {
		if c.From < to && c.To > from {
			f(c)
		}
	}
}
