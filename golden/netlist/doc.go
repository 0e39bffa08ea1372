// Package netlist holds arithmetic units as gates, and says which of their faults a stream of operands shows.
//
// Each unit is built by a function here, of AND, OR, XOR and NOT, and proven equal to the reference on many operands. A
// fault is one pin of one gate that is stuck at a value, or that is late: it keeps its last value for one operation when it
// should rise or fall. Faults that no operand can tell apart count once. Simulation is exact for single faults and takes 64
// operands at a time.
//
// The netlists are models: textbook structures of the right width, not those of any GPU.
package netlist

import "slices"

type op uint8

const (
	opConst op = iota // nets 0 and 1
	opIn
	opAnd
	opOr
	opXor
	opNot
)

// A net is a wire, by the number of the gate that drives it: operands have lower numbers than results.
type net = int32

const (
	zero net = 0
	one  net = 1
)

// A Port is one operand or result of a unit.
type Port struct {
	Name  string
	Width int // bits, up to 64
}

// A Netlist is a unit as gates.
type Netlist struct {
	Name     string
	Does     string
	In, Out  []Port
	Views    []View // which results an operation shows: view 0 is all of them
	op       []op
	a, b     []net
	outs     []net
	ins      int
	fans     [][]net // gates that a net feeds
	isOut    []bool
	outIndex map[net][]int
	part     []uint8 // of the unit, by gate
	parts    []string
}

// PartOf names the part of the unit that a gate belongs to, as align.
func (n *Netlist) PartOf(gate int32) string { return n.parts[n.part[gate]] }

// A View is a mask for each result: an operation that keeps only half of a product shows only that half's faults.
type View []uint64

// Gates is how many the unit has.
func (n *Netlist) Gates() int { return len(n.op) - 2 - n.ins }

// builder makes a netlist: it folds constants, and builds no gate twice.
type builder struct {
	n    Netlist
	seen map[[3]int32]net
}

func newBuilder(name, does string) *builder {
	return &builder{n: Netlist{Name: name, Does: does, op: []op{opConst, opConst}, a: []net{0, 0}, b: []net{0, 0}, part: []uint8{0, 0}, parts: []string{"operands"}}, seen: map[[3]int32]net{}}
}

// input declares a port; all ports come before the first gate.
func (b *builder) input(name string, width int) bus {
	var out bus
	for range width {
		out = append(out, b.push(opIn, 0, 0))
	}
	b.n.In = append(b.n.In, Port{name, width})
	b.n.ins += width
	return out
}

// in names the part of the unit that the gates to come belong to.
func (b *builder) in(part string) { b.n.parts = append(b.n.parts, part) }

func (b *builder) push(o op, x, y net) net {
	b.n.part = append(b.n.part, uint8(len(b.n.parts)-1))
	b.n.op, b.n.a, b.n.b = append(b.n.op, o), append(b.n.a, x), append(b.n.b, y)
	return net(len(b.n.op) - 1)
}

func (b *builder) gate(o op, x, y net) net {
	if x > y && o != opNot {
		x, y = y, x
	}
	k := [3]int32{int32(o), x, y}
	if g, ok := b.seen[k]; ok {
		return g
	}
	g := b.push(o, x, y)
	b.seen[k] = g
	return g
}

func (b *builder) opposite(x, y net) bool {
	return b.n.op[x] == opNot && b.n.a[x] == y || b.n.op[y] == opNot && b.n.a[y] == x
}

func (b *builder) not(x net) net {
	switch {
	case x <= one:
		return one - x
	case b.n.op[x] == opNot:
		return b.n.a[x]
	}
	return b.gate(opNot, x, 0)
}

func (b *builder) and(x, y net) net {
	switch {
	case x == zero || y == zero || b.opposite(x, y):
		return zero
	case x == one || x == y:
		return y
	case y == one:
		return x
	}
	return b.gate(opAnd, x, y)
}

func (b *builder) or(x, y net) net {
	switch {
	case x == one || y == one || b.opposite(x, y):
		return one
	case x == zero || x == y:
		return y
	case y == zero:
		return x
	}
	return b.gate(opOr, x, y)
}

func (b *builder) xor(x, y net) net {
	switch {
	case x == y:
		return zero
	case b.opposite(x, y):
		return one
	case x == zero:
		return y
	case y == zero:
		return x
	case x == one:
		return b.not(y)
	case y == one:
		return b.not(x)
	}
	return b.gate(opXor, x, y)
}

// mux is y when s, else x.
func (b *builder) mux(s, x, y net) net {
	switch {
	case s == zero || x == y:
		return x
	case s == one:
		return y
	case y == one:
		return b.or(s, x)
	case y == zero:
		return b.and(b.not(s), x)
	case x == zero:
		return b.and(s, y)
	case x == one:
		return b.or(b.not(s), y)
	}
	return b.or(b.and(b.not(s), x), b.and(s, y))
}

// output declares a result.
func (b *builder) output(name string, x bus) {
	b.n.Out = append(b.n.Out, Port{name, len(x)})
	b.n.outs = append(b.n.outs, x...)
}

// done drops gates that no result needs, and counts what each net feeds.
func (b *builder) done(views ...View) *Netlist {
	n := &b.n
	live := make([]bool, len(n.op))
	for i := range n.ins + 2 {
		live[i] = true
	}
	for _, o := range n.outs {
		live[o] = true
	}
	for g := len(n.op) - 1; g >= n.ins+2; g-- {
		if live[g] {
			live[n.a[g]] = true
			if n.op[g] != opNot {
				live[n.b[g]] = true
			}
		}
	}
	to := make([]net, len(n.op))
	k := 0
	for g := range n.op {
		if live[g] {
			to[g] = net(k)
			n.op[k], n.a[k], n.b[k], n.part[k] = n.op[g], to[n.a[g]], to[n.b[g]], n.part[g]
			k++
		}
	}
	n.op, n.a, n.b, n.part = n.op[:k:k], n.a[:k:k], n.b[:k:k], n.part[:k:k]
	n.fans, n.isOut, n.outIndex = make([][]net, k), make([]bool, k), map[net][]int{}
	for g := n.ins + 2; g < k; g++ {
		n.fans[n.a[g]] = append(n.fans[n.a[g]], net(g))
		if n.op[g] != opNot {
			n.fans[n.b[g]] = append(n.fans[n.b[g]], net(g))
		}
	}
	for i := range n.outs {
		n.outs[i] = to[n.outs[i]]
		n.isOut[n.outs[i]] = true
		n.outIndex[n.outs[i]] = append(n.outIndex[n.outs[i]], i)
	}
	all := make(View, len(n.Out))
	for i := range all {
		all[i] = ^uint64(0)
	}
	n.Views = slices.Concat([]View{all}, views)
	return n
}
