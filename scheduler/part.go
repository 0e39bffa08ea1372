package scheduler

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/scheduler/topo"
)

// A profile is one kind of MIG instance: compute slices of seven, memory slices of eight, and where they may start.
// Source: NVIDIA, MIG user guide, "Supported MIG profiles" and the placements that nvidia-smi mig -lgipp lists for A100 and
// H100: a bit for each memory slice an instance may start at.
type profile struct {
	units, slots int
	starts       uint8
	memory       int // GiB in its name
}

var profiles = []profile{
	{units: 1, slots: 1, starts: 0b0111_1111},
	{units: 1, slots: 2, starts: 0b0101_0101},
	{units: 2, slots: 2, starts: 0b0001_0101},
	{units: 3, slots: 4, starts: 0b0001_0001},
	{units: 4, slots: 4, starts: 0b0000_0001},
	{units: 7, slots: 8, starts: 0b0000_0001},
}

// profileOf reads a profile's name, as 1g.10gb.
func profileOf(name string) (profile, bool) {
	u, m, ok := strings.Cut(name, "g.")
	mem, gb := strings.CutSuffix(m, "gb")
	units, err1 := strconv.Atoi(u)
	memory, err2 := strconv.Atoi(mem)
	if !ok || !gb || err1 != nil || err2 != nil || memory < 1 {
		return profile{}, false
	}
	i := slices.IndexFunc(profiles, func(p profile) bool { return p.units == units })
	if i < 0 {
		return profile{}, false
	}
	p := profiles[i]
	p.memory = memory
	return p, true
}

// on is the profile on a GPU with so many GiB: its name says how many of the eight memory slices that is. A GPU whose
// memory nobody told is taken to have the usual number.
func (p profile) on(gib int) (profile, bool) {
	if gib == 0 {
		return p, true
	}
	slots := (p.memory*16 + gib) / (2 * gib) // rounded: 18 GB of 141 are one slice
	for _, q := range profiles {
		if q.units == p.units && q.slots == slots {
			q.memory = p.memory
			return q, true
		}
	}
	return p, false
}

// part is the part of one of n's GPUs that the gang would take, and what that leaves of the GPU; the tightest GPU that is
// shared already, else the one that Pick would give up. Left is in slices, percent or shards, and larger than any of these
// where a whole GPU must be broken.
func (a *ask) part(n *node) (part Part, left int, ok bool) {
	share := a.g.Share
	left = 1 << 20
	taken := uint32(0)
	for _, p := range n.parts {
		taken |= 1 << p.GPU
	}
	for m := taken & n.covered; m != 0; m &= m - 1 {
		if p, l, fits := share.on(n, bits.TrailingZeros32(m)); fits && l < left {
			part, left, ok = p, l, true
		}
	}
	if ok || a.shared {
		return part, left, ok
	}
	fresh := n.usable()
	if share.Kind == MIG {
		fresh = n.free & n.covered & n.shape.MIG
	}
	gpu := n.shape.Pick(fresh, 1)
	if gpu == 0 {
		return Part{}, 0, false
	}
	part, _, ok = share.on(n, bits.TrailingZeros32(gpu))
	return part, 1000 + bits.OnesCount32(fresh), ok
}

// fitsPart reports whether n has the part.
func (a *ask) fitsPart(n *node) bool {
	if n.bar != nil || n.shape == nil {
		return false
	}
	_, _, ok := a.part(n)
	return ok
}

// on is the part of gpu of n that s would be, and what it leaves.
func (s Share) on(n *node, gpu int) (p Part, left int, ok bool) {
	used, slots, units, memory := 0, uint8(0), 0, 0
	for _, p := range n.parts {
		if int(p.GPU) != gpu {
			continue
		}
		if p.Kind != s.Kind {
			return Part{}, 0, false
		}
		used += int(p.Amount)
		slots |= p.Slots
		units += int(p.Units)
		memory += int(p.Memory)
	}
	p = Part{Kind: s.Kind, GPU: uint8(gpu)}
	switch s.Kind {
	case MIG:
		pr, _ := profileOf(s.Profile) // valid has read it
		pr, known := pr.on(n.shape.Memory)
		at := pr.start(slots)
		if !known || n.shape.MIG&(1<<gpu) == 0 || at < 0 || units+pr.units > 7 || s.Memory > pr.memory {
			return Part{}, 0, false
		}
		p.Slots, p.Units, p.Memory = pr.mask(at), uint8(pr.units), uint16(pr.memory)
		return p, 8 - bits.OnesCount8(slots|p.Slots), true
	case MPS:
		return s.slice(p, n.shape, used, 100, memory)
	case Shard:
		return s.slice(p, n.shape, used, n.shape.Shards, memory)
	}
	return Part{}, 0, false
}

// slice is a countable part: amount of capacity, and its share of the memory or what was asked for, whichever is more.
func (s Share) slice(p Part, shape *topo.Shape, used, capacity, memory int) (Part, int, bool) {
	if shape.MIG&(1<<p.GPU) != 0 || used+s.Amount > capacity || s.Memory > 0 && shape.Memory == 0 {
		return Part{}, 0, false
	}
	gib := max(shape.Memory*s.Amount/capacity, s.Memory)
	if shape.Memory > 0 && memory+gib > shape.Memory {
		return Part{}, 0, false
	}
	p.Amount, p.Memory = uint8(s.Amount), uint16(gib)
	return p, capacity - used - s.Amount, true
}

func (p profile) mask(start int) uint8 { return uint8((1<<p.slots - 1) << start) }

// start is where an instance may start that leaves most room for large ones: of the starts that are free, the one that
// spoils the fewest starts of the others; of equals the last. It is -1 where none is free.
func (p profile) start(taken uint8) int {
	best, most := -1, -1
	for at := range 8 {
		if p.starts&(1<<at) == 0 || taken&p.mask(at) != 0 {
			continue
		}
		room := 0
		for _, q := range profiles {
			for b := range 8 {
				if q.starts&(1<<b) != 0 && (taken|p.mask(at))&q.mask(b) == 0 {
					room += q.slots
				}
			}
		}
		if room >= most {
			best, most = at, room
		}
	}
	return best
}

// takeParts takes a part on each of n of the nodes lo ≤ i < hi, those that are left with the least, and says what is left.
func (a *ask) takeParts(out []Take, lo, hi int32, n int) ([]Take, int) {
	type offer struct {
		node int32
		left int
	}
	var offers []offer
	for i := lo; i < hi; i++ {
		c, b := a.s.lay.bit(i)
		if a.passes(c)&b == 0 {
			continue
		}
		_, left, _ := a.part(a.s.node(i))
		offers = append(offers, offer{i, left})
	}
	slices.SortStableFunc(offers, func(x, y offer) int {
		if a.g.Spread {
			x, y = y, x
		}
		return cmp.Compare(x.left, y.left)
	})
	offers = offers[:min(n, len(offers))]
	slices.SortFunc(offers, func(x, y offer) int { return int(x.node - y.node) })
	waste := 0
	for _, o := range offers {
		out = append(out, Take{Node: o.node})
		waste += o.left
	}
	return out, waste
}

// canPart reports why part p of n cannot be had.
func (n *node) canPart(p Part, bad func(string, ...any) error) error {
	if int(p.GPU) >= n.shape.GPUs {
		return bad("no GPU %d", p.GPU)
	}
	shared := false
	used, units, memory := int(p.Amount), int(p.Units), int(p.Memory)
	for _, o := range n.parts {
		if o.GPU != p.GPU {
			continue
		}
		shared = true
		if o.Kind != p.Kind || o.Slots&p.Slots != 0 {
			return bad("GPU %d is shared as %s, or that slice is taken", p.GPU, o.Kind)
		}
		used, units, memory = used+int(o.Amount), units+int(o.Units), memory+int(o.Memory)
	}
	inMIG := n.shape.MIG&(1<<p.GPU) != 0
	switch {
	case !shared && n.free&(1<<p.GPU) == 0:
		return bad("GPU %d is taken whole", p.GPU)
	case (p.Kind == MIG) != inMIG:
		return bad("GPU %d: %s does not go with its MIG mode", p.GPU, p.Kind)
	case p.Kind == MPS && used > 100, p.Kind == Shard && used > n.shape.Shards, units > 7, n.shape.Memory > 0 && p.Kind != MIG && memory > n.shape.Memory:
		return bad("GPU %d is shared out", p.GPU)
	}
	return nil
}
