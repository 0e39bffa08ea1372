package ptxvm

import (
	"math"
	"math/bits"
	"strings"
)

// An accumulator is how one generation's tensor core sums: every term is cut to frac fraction bits below the largest
// exponent, the sum is exact, and the result is cut to binary32. split sums a k of 16 as two halves, one after the other.
// Source: the published model MMA-Sim, validated by its authors bit for bit on hardware.
type accumulator struct {
	frac  int
	split bool
	out   int          // bits of the result's fraction that are always zero
	eight accumulator8 // of FP8 operands
}

// An accumulator8 is how FP8 products are summed: Ada keeps few bits, and as few of the result. Before it, and on Hopper, where
// mma.sync widens them to FP16, there is no such unit.
type accumulator8 struct{ frac, out int }

func accumulatorOf(capability int) accumulator {
	switch {
	case capability == 89:
		return accumulator{frac: 24, split: true, eight: accumulator8{13, 13}}
	case capability < 75:
		return accumulator{frac: 23}
	case capability < 80:
		return accumulator{frac: 24}
	case capability < 90:
		return accumulator{frac: 24, split: true}
	}
	return accumulator{frac: 25}
}

// A term is ±sig · 2^exp.
type term struct {
	sig int64
	exp int
}

// halfTerm is an f16 as a term whose significand has its leading bit at 10, when it is normal.
func halfTerm(x uint64) term {
	e, m := int(x>>10&31), int64(x&0x3FF)
	if e == 0 {
		e = 1
	} else {
		m |= 0x400
	}
	if x&0x8000 != 0 {
		m = -m
	}
	return term{m, e - 25}
}

// bhalfTerm is a bf16 as a term, its leading bit likewise at 10.
func bhalfTerm(x uint64) term {
	e, m := int(x>>7&255), int64(x&0x7F)
	if e == 0 {
		e = 1
	} else {
		m |= 0x80
	}
	if x&0x8000 != 0 {
		m = -m
	}
	return term{m << 3, e - 137}
}

// tf32Term is a tf32 as a term, its leading bit likewise at 10: the hardware cuts the low 13 bits.
func tf32Term(x uint64) term { return wideTerm(x, 23, 127, 13) }

// e4m3Term and e5m2Term are FP8.
func e4m3Term(x uint64) term { return eightTerm(x, 3, 7) }
func e5m2Term(x uint64) term { return eightTerm(x, 2, 15) }

// eightTerm is a number of 8 bits with man of fraction.
func eightTerm(x uint64, man, bias int) term {
	e, m := int(x&0x7F>>man), int64(x&(1<<man-1))
	if e == 0 {
		e = 1
	} else {
		m |= 1 << man
	}
	if x&0x80 != 0 {
		m = -m
	}
	return term{m << (10 - man), e - bias - 10}
}

// wideTerm is a number of 32 bits, man of them fraction, of which the lowest are cut.
func wideTerm(x uint64, man, bias, lost int) term {
	e, m := int(x>>man&0xFF), int64(x&(1<<man-1)>>lost)
	if e == 0 {
		e = 1
	} else {
		m |= 1 << (man - lost)
	}
	if x>>31&1 != 0 {
		m = -m
	}
	return term{m, e - bias - man + lost}
}

// fused is c + Σ a·b as the tensor core gives it. Infinities and NaN are not modelled: ok is false.
func (acc accumulator) fused(c uint32, a, b []term) (out uint32, ok bool) {
	ce := int(c >> 23 & 255)
	if ce == 255 {
		return 0, false
	}
	cm := int64(c & 0x7FFFFF)
	if ce == 0 {
		ce = 1
	} else {
		cm |= 1 << 23
	}
	if c>>31 != 0 {
		cm = -cm
	}
	ct := term{cm, ce - 150}
	// emax: of C's leading bit, and of the products as the exponents of a and b say.
	emax := ce - 127
	for i := range a {
		if a[i].sig != 0 && b[i].sig != 0 {
			emax = max(emax, a[i].exp+10+b[i].exp+10)
		}
	}
	unit := emax - acc.frac
	sum := cut(ct, unit)
	for i := range a {
		sum += cut(term{a[i].sig * b[i].sig, a[i].exp + b[i].exp}, unit)
	}
	if sum == 0 {
		return 0, true
	}
	neg := sum < 0
	if neg {
		sum = -sum
	}
	top := bits.Len64(uint64(sum)) - 1
	e := top + unit + 127 // the biased exponent
	switch shift := top - 23; {
	case e < 1: // subnormal: the unit is 2^-149
		if s := -149 - unit; s >= 0 {
			sum >>= min(s, 63)
		} else {
			sum <<= -s
		}
		out = uint32(sum)
	case e > 254:
		out = 0x7F800000
	case shift >= 0:
		out = uint32(e)<<23 | uint32(sum>>shift)&0x7FFFFF
	default:
		out = uint32(e)<<23 | uint32(sum<<-shift)&0x7FFFFF
	}
	out &^= 1<<acc.out - 1
	if neg {
		out |= 1 << 31
	}
	return out, true
}

// cut is a term in whole units of 2^unit, toward zero.
func cut(t term, unit int) int64 {
	s := t.exp - unit
	if s >= 0 {
		return t.sig << min(s, 62) // a term's leading bit is at most acc.frac above the unit
	}
	if s < -62 {
		return 0
	}
	if t.sig < 0 {
		return -(-t.sig >> -s)
	}
	return t.sig >> -s
}

// A shape is one form of mma: how operands lie in a warp's registers and what they are. Every register of A and B holds
// elements of one row, or column, in a row; two registers of A are rows 8 apart, the next two lie in the second half of k.
type shape struct {
	rows, k int
	a, b    func(x uint64) term  // of floating point below 64 bits
	ia, ib  func(x uint64) int32 // of integers
	bits    int                  // of an element
	wide    bool                 // FP64
	and     bool                 // single bits: AND, and the count of ones
	eight   bool                 // FP8
	unit    Unit
}

func signed(bits int) func(x uint64) int32 {
	return func(x uint64) int32 { return int32(uint32(x)<<(32-bits)) >> (32 - bits) }
}

func unsigned(bits int) func(x uint64) int32 {
	return func(x uint64) int32 { return int32(x & (1<<bits - 1)) }
}

// shapes are the forms that the machine knows. NVIDIA, "PTX ISA", matrix fragments for mma.
var shapes = map[string]shape{
	"m16n8k16.row.col.f32.f16.f16.f32":         {rows: 16, k: 16, a: halfTerm, b: halfTerm, bits: 16, unit: tensor16},
	"m16n8k16.row.col.f32.bf16.bf16.f32":       {rows: 16, k: 16, a: bhalfTerm, b: bhalfTerm, bits: 16, unit: tensor16},
	"m16n8k8.row.col.f32.f16.f16.f32":          {rows: 16, k: 8, a: halfTerm, b: halfTerm, bits: 16, unit: tensor16},
	"m16n8k8.row.col.f32.tf32.tf32.f32":        {rows: 16, k: 8, a: tf32Term, b: tf32Term, bits: 32, unit: tensor16},
	"m16n8k32.row.col.f32.e4m3.e4m3.f32":       {rows: 16, k: 32, a: e4m3Term, b: e4m3Term, bits: 8, eight: true, unit: tensor8},
	"m16n8k32.row.col.f32.e5m2.e4m3.f32":       {rows: 16, k: 32, a: e5m2Term, b: e4m3Term, bits: 8, eight: true, unit: tensor8},
	"m16n8k32.row.col.f32.e4m3.e5m2.f32":       {rows: 16, k: 32, a: e4m3Term, b: e5m2Term, bits: 8, eight: true, unit: tensor8},
	"m16n8k32.row.col.f32.e5m2.e5m2.f32":       {rows: 16, k: 32, a: e5m2Term, b: e5m2Term, bits: 8, eight: true, unit: tensor8},
	"m8n8k4.row.col.f64.f64.f64.f64":           {rows: 8, k: 4, bits: 64, wide: true, unit: tensor64},
	"m16n8k32.row.col.s32.s8.s8.s32":           {rows: 16, k: 32, ia: signed(8), ib: signed(8), bits: 8, unit: tensorInt8},
	"m8n8k16.row.col.s32.s8.u8.s32":            {rows: 8, k: 16, ia: signed(8), ib: unsigned(8), bits: 8, unit: tensorInt8},
	"m16n8k64.row.col.s32.s4.s4.s32":           {rows: 16, k: 64, ia: signed(4), ib: signed(4), bits: 4, unit: tensorInt8},
	"m16n8k256.row.col.s32.b1.b1.s32.and.popc": {rows: 16, k: 256, bits: 1, and: true, unit: tensorInt8},
}

// mma joins a warp's lanes into a matrix product of 8 columns.
func mma(p *parser, in *inst) {
	name, sync := strings.CutPrefix(in.full, "mma.sync.aligned.")
	s, ok := shapes[name]
	if !ok || !sync {
		p.fail("%s is not known", in.full)
	}
	per := max(32/s.bits, 1)
	nb := s.k / (4 * per)
	na, nc := nb*s.rows/8, s.rows/4
	p.arity(in, 4)
	for i, n := range []int{nc, na, nb, nc} {
		if in.args[i].kind != argList || len(in.args[i].list) != n {
			p.fail("%s: operand %d has not %d registers", in.full, i+1, n)
		}
	}
	p.writes(in, in.args[0])
	p.reads(in, in.args[1:]...)
	in.unit, in.width, in.kind = s.unit, 32, kindCollect
	if s.wide {
		in.width = 64
	}
	in.members = func(*warp, int) uint32 { return 0xFFFFFFFF }
	d, a, b, c := in.args[0].list, in.args[1].list, in.args[2].list, in.args[3].list
	in.exec = func(w *warp, m uint32) {
		if m != 0xFFFFFFFF {
			w.trap("divergence", "a tensor product by lanes %08x", m)
		}
		ta, tb := make([][]uint64, s.rows), make([][]uint64, 8) // registers along k, by row and column
		for r := range ta {
			ta[r] = make([]uint64, 4*nb)
		}
		for col := range tb {
			tb[col] = make([]uint64, 4*nb)
		}
		for l := range 32 {
			for j := range a {
				row, part := l/4, j
				if s.rows == 16 {
					row, part = row+8*(j%2), j/2
				}
				ta[row][4*part+l%4] = w.val(&a[j])[l]
			}
			for j := range b {
				tb[l/4][4*j+l%4] = w.val(&b[j])[l]
			}
		}
		var out [4]lane
		for l := range 32 {
			for j := range c {
				row, col := l/4+8*(j/2), l%4*2+j%2
				v, ok := w.dot(&s, w.val(&c[j])[l], ta[row], tb[col])
				if !ok {
					w.trap("illegal_instruction", "a tensor product of an infinity or NaN, which the machine does not model")
				}
				out[j][l] = v
			}
		}
		for j := range d {
			w.r[d[j].reg] = out[j]
		}
	}
}

// dot is one element of the product: c and the registers of A's row and B's column. ok is false for what is not modelled.
func (w *warp) dot(s *shape, c uint64, a, b []uint64) (out uint64, ok bool) {
	switch {
	case s.wide: // one k after the other, each rounded
		v := math.Float64frombits(c)
		for k := range a {
			v = math.FMA(math.Float64frombits(a[k]), math.Float64frombits(b[k]), v)
		}
		return math.Float64bits(v), true
	case s.and:
		v := uint32(c)
		for k := range a {
			v += uint32(bits.OnesCount32(uint32(a[k] & b[k])))
		}
		return uint64(v), true
	case s.ia != nil:
		v := uint32(c)
		for k := range a {
			for h := 0; h < 32; h += s.bits {
				v += uint32(s.ia(a[k]>>h) * s.ib(b[k]>>h))
			}
		}
		return uint64(v), true
	}
	acc := w.b.run.dev.acc
	var ta, tb [32]term
	n := 0
	for k := range a {
		for h := 0; h < 32; h += s.bits {
			ta[n], tb[n] = s.a(a[k]>>h), s.b(b[k]>>h)
			n++
		}
	}
	if s.eight && acc.eight.frac > 0 {
		acc = accumulator{frac: acc.eight.frac, out: 23 - acc.eight.out, split: true}
	}
	v, half := uint32(c), n
	if acc.split {
		half = n / 2
	}
	for from := 0; from < n; from += half {
		if v, ok = acc.fused(v, ta[from:from+half], tb[from:from+half]); !ok {
			return 0, false
		}
	}
	return uint64(v), true
}
