package netlist

import (
	"fmt"

	"github.com/assay-gpu/assay/golden/ref"
)

// A Model is a unit of which there is a netlist: how it is built, and what it must compute.
type Model struct {
	Name  string
	Build func() *Netlist
	draw  func(r *random, op []uint64)
	want  func(op []uint64) uint64
}

// Models gives all units in the order of the reports.
func Models() []Model {
	return []Model{
		{"mad32", MAD, drawWords, func(o []uint64) uint64 { return ref.MAD(uint32(o[0]), uint32(o[1]), o[2]) }},
		{"lop3", LOP3, drawWords, func(o []uint64) uint64 {
			return uint64(ref.LOP3(uint32(o[0]), uint32(o[1]), uint32(o[2]), uint8(o[3])))
		}},
		{"shift", Shifter, drawShift, func(o []uint64) uint64 {
			return uint64(ref.Funnel(uint32(o[0]), uint32(o[1]), uint32(o[2]), o[3]&1 != 0, o[4]&1 != 0))
		}},
		{"address64", Adder64, drawWords, func(o []uint64) uint64 { return o[0] + o[1] }},
		{"fma16", FMA16, drawFloats(5, 10), func(o []uint64) uint64 { return uint64(ref.FMA16(uint32(o[0]), uint32(o[1]), uint32(o[2]))) }},
		{"fma32", FMA32, drawFloats(8, 23), func(o []uint64) uint64 { return uint64(ref.FMA32(uint32(o[0]), uint32(o[1]), uint32(o[2]))) }},
		{"fma64", FMA64, drawFloats(11, 52), func(o []uint64) uint64 { return ref.FMA64(o[0], o[1], o[2]) }},
		{"dot16", Dot, drawDot, func(o []uint64) uint64 {
			var a, b [16]uint16
			for i := range 16 {
				a[i], b[i] = uint16(o[i]), uint16(o[16+i])
			}
			return uint64(ref.Dot16(a[:], b[:], uint32(o[32])))
		}},
	}
}

// Lookup gives a model by its name.
func Lookup(name string) (Model, bool) {
	for _, m := range Models() {
		if m.Name == name {
			return m, true
		}
	}
	return Model{}, false
}

// Prove holds the gates to the reference on count operations drawn from a seed: uniform words, and operands near each other,
// at the ends of the range and special. The error names the first operation that differs.
func (m Model) Prove(count int, seed uint64) error {
	n := m.Build()
	u, r := NewUnit(n), &random{seed}
	ports := len(n.In)
	ops := make([]uint64, Lanes*ports)
	for done := 0; done < count; done += Lanes {
		for i := range Lanes {
			op := ops[i*ports:][:ports]
			m.draw(r, op)
			for p := range op {
				if w := n.In[p].Width; w < 64 {
					op[p] &= 1<<w - 1
				}
			}
		}
		for i, got := range u.Compute(ops) {
			op := ops[i*ports:][:ports]
			if want := m.want(op); got != want {
				return fmt.Errorf("%s: operation %d, operands %x: gates give %x, reference %x", m.Name, done+i, op, got, want)
			}
		}
	}
	return nil
}

// A random is splitmix64 (Steele, Lea, Flood, 2014).
type random struct{ s uint64 }

func (r *random) next() uint64 {
	r.s += 0x9E3779B97F4A7C15
	z := r.s
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func drawWords(r *random, op []uint64) {
	for i := range op {
		op[i] = r.next()
		switch r.next() % 8 { // long runs of ones and zeros, for carries
		case 0:
			op[i] = ^uint64(0) << (op[i] % 64)
		case 1:
			op[i] = ^uint64(0) >> (op[i] % 64)
		}
	}
}

func drawShift(r *random, op []uint64) {
	drawWords(r, op)
	if op[2] = r.next(); op[2]>>60 < 12 {
		op[2] &= 63
	}
	op[3], op[4] = r.next(), r.next()
}

// drawFloats draws numbers whose exponents lie anywhere, near the middle, or near that of the product.
func drawFloats(exp, man int) func(r *random, op []uint64) {
	return func(r *random, op []uint64) {
		bias := uint64(1)<<(exp-1) - 1
		field := func(x, e uint64) uint64 {
			k := uint64(1)<<exp - 1
			return x&^(k<<man) | e&k<<man
		}
		how := r.next()
		for i := range op {
			op[i] = r.next()
			switch how >> (8 * i) % 8 {
			case 0: // anything
			case 1:
				op[i] = field(op[i], op[i]>>56%4) // about the smallest
			case 2:
				op[i] = field(op[i], ^uint64(0)-op[i]>>56%4) // about the largest, with infinities and NaN
			case 3:
				op[i] = field(op[i]&^(1<<man-1), bias+op[i]>>58) // powers of two
			default:
				op[i] = field(op[i], bias+op[i]>>56%uint64(2*man)-uint64(man))
			}
		}
		if how>>32%2 == 0 {
			// The addend about as large as the product, at times its very opposite.
			k := uint64(1)<<exp - 1
			e := op[0]>>man&k + op[1]>>man&k - bias
			op[2] = field(op[2], e+how>>40%8-4)
			if how>>34%8 == 0 {
				op[1] = field(0, op[1]>>man) // 1.0 · 2^n
				op[2] = field(op[0]^1<<(exp+man), e) ^ how>>48%4
			}
		}
	}
}

func drawDot(r *random, op []uint64) {
	how := r.next()
	for i := range op[:32] {
		op[i] = r.next()
		e := op[i] >> 48 % 31 // finite
		if how%2 == 0 {
			e = 12 + op[i]>>48%6
		}
		op[i] = op[i]&0x83FF | e<<10
		if op[i]>>56%16 == 0 {
			op[i] &= 0x8000
		}
	}
	op[32] = r.next()
	e := op[32] >> 40 % 255
	if how>>1%4 != 0 {
		e = 110 + op[32]>>40%40
	}
	op[32] = op[32]&0x807FFFFF | e<<23
}
