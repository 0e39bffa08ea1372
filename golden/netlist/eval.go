package netlist

// Lanes is how many operations are taken at a time.
const Lanes = 64

// transpose turns 64 rows of 64 bits into columns (Hacker's Delight, 7-3).
func transpose(m *[64]uint64) {
	j, k := 32, uint64(0x00000000FFFFFFFF)
	for j != 0 {
		for i := 0; i < 64; i = (i + j + 1) &^ j {
			t := (m[i]>>j ^ m[i+j]) & k
			m[i] ^= t << j
			m[i+j] ^= t
		}
		j >>= 1
		k ^= k << j
	}
}

// load puts up to 64 operations into the inputs: of each operation the ports' values, one after the other.
func (n *Netlist) load(vals []uint64, ops []uint64) {
	ports := len(n.In)
	var m [64]uint64
	at := 2
	for p, port := range n.In {
		for i := range m {
			m[i] = 0
			if k := i*ports + p; k < len(ops) {
				m[i] = ops[k]
			}
		}
		transpose(&m)
		copy(vals[at:at+port.Width], m[:port.Width])
		at += port.Width
	}
	vals[0], vals[1] = 0, ^uint64(0)
}

// run gives every net's value in 64 operations.
func (n *Netlist) run(vals []uint64) {
	for g := n.ins + 2; g < len(n.op); g++ {
		x, y := vals[n.a[g]], vals[n.b[g]]
		switch n.op[g] {
		case opAnd:
			vals[g] = x & y
		case opOr:
			vals[g] = x | y
		case opXor:
			vals[g] = x ^ y
		default:
			vals[g] = ^x
		}
	}
}

// results reads the outputs of up to 64 operations back.
func (n *Netlist) results(vals []uint64, count int) []uint64 {
	out := make([]uint64, count*len(n.Out))
	at := 0
	for p, port := range n.Out {
		var m [64]uint64
		for i := range port.Width {
			m[i] = vals[n.outs[at+i]]
		}
		at += port.Width
		transpose(&m)
		for i := range count {
			out[i*len(n.Out)+p] = m[i]
		}
	}
	return out
}

// A Unit computes with a netlist, whole or with one fault. It is not for use by several goroutines.
type Unit struct {
	n    *Netlist
	vals []uint64
}

// NewUnit makes one.
func NewUnit(n *Netlist) *Unit { return &Unit{n, make([]uint64, len(n.op))} }

// Compute gives the results of up to 64 operations: the operands of each, port after port, and likewise the results.
func (u *Unit) Compute(ops []uint64) []uint64 {
	u.n.load(u.vals, ops)
	u.n.run(u.vals)
	return u.n.results(u.vals, len(ops)/len(u.n.In))
}

// ComputeWith is Compute with a fault. A late pin takes the operations for successive ones; before the first it had the
// value that it is late to leave.
func (u *Unit) ComputeWith(f Fault, ops []uint64) []uint64 {
	n := u.n
	n.load(u.vals, ops)
	stuck := func(v uint64) uint64 {
		switch {
		case f.Late && f.Value:
			return v | v<<1 | 1 // falls late
		case f.Late:
			return v & (v << 1) // rises late
		case f.Value:
			return ^uint64(0)
		}
		return 0
	}
	if f.Pin == Result && int(f.Gate) < n.ins+2 {
		u.vals[f.Gate] = stuck(u.vals[f.Gate])
	}
	for g := n.ins + 2; g < len(n.op); g++ {
		x, y := u.vals[n.a[g]], u.vals[n.b[g]]
		if net(g) == f.Gate {
			switch f.Pin {
			case 0:
				x = stuck(x)
			case 1:
				y = stuck(y)
			}
		}
		var v uint64
		switch n.op[g] {
		case opAnd:
			v = x & y
		case opOr:
			v = x | y
		case opXor:
			v = x ^ y
		default:
			v = ^x
		}
		if net(g) == f.Gate && f.Pin == Result {
			v = stuck(v)
		}
		u.vals[g] = v
	}
	return n.results(u.vals, len(ops)/len(n.In))
}
