package netlist

import "math/bits"

// A Grader says which faults a stream of operations shows at the unit's results. Faults that are found are not simulated
// again.
//
// A wire that feeds one gate only is followed backwards from where wires part; only there is the unit run again with the
// wire turned over.
type Grader struct {
	n      *Netlist
	faults []Fault
	found  []bool
	left   int
	byStem map[net][]int // faults not found, by the net at which what they do comes out
	stem   []net
	vals   []uint64
	last   []uint64 // each net's value in the operation before, in bit 0
	begun  bool
	local  []uint64 // which operations let a change of the net through to its stem
	turned []uint64
	stamp  []int32
	epoch  int32
	due    []uint64 // gates to run again
	shown  []uint64 // for each result, the operations that show it
}

// NewGrader grades these faults, which are all of one kind.
func NewGrader(n *Netlist, faults []Fault) *Grader {
	k := len(n.op)
	g := &Grader{n: n, faults: faults, found: make([]bool, len(faults)), left: len(faults), byStem: map[net][]int{}, stem: make([]net, k),
		vals: make([]uint64, k), last: make([]uint64, k), local: make([]uint64, k), turned: make([]uint64, k), stamp: make([]int32, k),
		due: make([]uint64, (k+63)/64), shown: make([]uint64, len(n.outs))}
	for x := k - 1; x >= 0; x-- {
		g.stem[x] = net(x)
		if n.single(net(x)) {
			g.stem[x] = g.stem[n.fans[x][0]]
		}
	}
	for i, f := range faults {
		s := g.stem[f.Gate]
		g.byStem[s] = append(g.byStem[s], i)
	}
	return g
}

// Left is how many faults are not found.
func (g *Grader) Left() int { return g.left }

// Found reports whether fault i is.
func (g *Grader) Found(i int) bool { return g.found[i] }

// Break forgets the operation before: what follows comes from another place.
func (g *Grader) Break() { g.begun = false }

// Feed takes operations in the order in which the unit runs them: the operands of each, port after port, and which view its
// results are seen through; nil for all of every result.
func (g *Grader) Feed(ops []uint64, views []uint8) {
	ports := len(g.n.In)
	for at := 0; at*ports < len(ops) && g.left > 0; at += Lanes {
		end := min(at+Lanes, len(ops)/ports)
		var v []uint8
		if views != nil {
			v = views[at:end]
		}
		g.block(ops[at*ports:end*ports], end-at, v)
	}
}

func (g *Grader) block(ops []uint64, count int, views []uint8) {
	n := g.n
	n.load(g.vals, ops)
	n.run(g.vals)
	valid := ^uint64(0)
	if count < 64 {
		valid = 1<<count - 1
	}
	g.show(valid, views)
	// Backwards: which changes reach the stem.
	for x := len(n.op) - 1; x >= 2; x-- {
		if g.stem[x] == net(x) {
			g.local[x] = valid
			continue
		}
		to := n.fans[x][0]
		g.local[x] = g.local[to] & g.through(int(to), net(x))
	}
	for s, list := range g.byStem {
		g.grade(s, list)
	}
	for x := range g.vals {
		g.last[x] = g.vals[x] >> (count - 1) & 1
	}
	g.begun = true
}

// through is when gate to lets a change of its operand x pass.
func (g *Grader) through(to int, x net) uint64 {
	n := g.n
	other := n.a[to]
	if other == x {
		other = n.b[to]
	}
	switch n.op[to] {
	case opAnd:
		return g.vals[other]
	case opOr:
		return ^g.vals[other]
	}
	return ^uint64(0)
}

func (g *Grader) show(valid uint64, views []uint8) {
	for i := range g.shown {
		g.shown[i] = valid
	}
	if views == nil {
		return
	}
	var in [8]uint64
	for i, v := range views {
		in[v] |= 1 << i
	}
	at := 0
	for p, port := range g.n.Out {
		for i := range port.Width {
			m := uint64(0)
			for v := range g.n.Views {
				if g.n.Views[v][p]>>i&1 != 0 {
					m |= in[v]
				}
			}
			g.shown[at+i] = valid & m
		}
		at += port.Width
	}
}

// grade looks at the faults that come out at one stem.
func (g *Grader) grade(s net, list []int) {
	n := g.n
	acts := make([]uint64, len(list))
	var union uint64
	for k, i := range list {
		f := &g.faults[i]
		x, reach := f.Gate, g.local[f.Gate]
		if f.Pin != Result {
			x = n.from(int(f.Gate), f.Pin)
			reach &= g.through(int(f.Gate), x)
		}
		v := g.vals[x]
		was := v<<1 | g.last[x]
		usable := ^uint64(0)
		if f.Late && !g.begun {
			usable = ^uint64(1)
		}
		if !f.Value {
			v = ^v
			was = ^was
		}
		// The right value is the other one; a late pin had this one before.
		acts[k] = ^v & reach
		if f.Late {
			acts[k] &= was & usable
		}
		union |= acts[k]
	}
	if union == 0 {
		return
	}
	seen := g.turn(s, union)
	if seen == 0 {
		return
	}
	rest := list[:0]
	for k, i := range list {
		if acts[k]&seen != 0 {
			g.found[i] = true
			g.left--
		} else {
			rest = append(rest, i)
		}
	}
	if len(rest) == 0 {
		delete(g.byStem, s)
	} else {
		g.byStem[s] = rest
	}
}

// turn gives the operations of those asked for in which turning net s over shows at a result.
func (g *Grader) turn(s net, ask uint64) uint64 {
	n := g.n
	g.epoch++
	seen := g.put(s, g.vals[s]^ask)
	first, last := int(s)/64, len(g.due)-1
	for w := first; w <= last; w++ {
		for g.due[w] != 0 {
			x := 64*w + bits.TrailingZeros64(g.due[w])
			g.due[w] &= g.due[w] - 1
			if seen == ask {
				continue // enough is known: only the list is emptied
			}
			p, q := g.now(n.a[x]), g.now(n.b[x])
			var v uint64
			switch n.op[x] {
			case opAnd:
				v = p & q
			case opOr:
				v = p | q
			case opXor:
				v = p ^ q
			default:
				v = ^p
			}
			if v != g.vals[x] {
				seen |= g.put(net(x), v)
			}
		}
	}
	return seen & ask
}

func (g *Grader) now(x net) uint64 {
	if g.stamp[x] == g.epoch {
		return g.turned[x]
	}
	return g.vals[x]
}

// put gives a net another value and says where that shows.
func (g *Grader) put(x net, v uint64) (seen uint64) {
	g.stamp[x], g.turned[x] = g.epoch, v
	for _, to := range g.n.fans[x] {
		g.due[to/64] |= 1 << (to % 64)
	}
	if g.n.isOut[x] {
		for _, o := range g.n.outIndex[x] {
			seen |= (v ^ g.vals[x]) & g.shown[o]
		}
	}
	return seen
}
