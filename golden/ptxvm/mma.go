package ptxvm

import "math/bits"

// An accumulator is how one generation's tensor core sums: every term is cut to frac fraction bits below the largest
// exponent, the sum is exact, and the result is cut to binary32. split sums a k of 16 as two halves, one after the other.
// Source: the published model MMA-Sim, validated by its authors bit for bit on hardware.
type accumulator struct {
	frac  int
	split bool
}

func accumulatorOf(capability int) accumulator {
	switch {
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

// mma joins a warp's lanes into a matrix product. Known are m16n8k16 with f16 or bf16 operands and f32 accumulators, and
// m16n8k32 with s8 operands and s32 accumulators.
func mma(p *parser, in *inst) {
	operand := halfTerm
	switch in.full {
	case "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32":
	case "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32":
		operand = bhalfTerm
	default:
		p.fail("%s is not known", in.full)
	}
	p.arity(in, 4)
	for i, n := range []int{4, 4, 2, 4} {
		if in.args[i].kind != argList || len(in.args[i].list) != n {
			p.fail("%s: operand %d has not %d registers", in.full, i+1, n)
		}
	}
	p.writes(in, in.args[0])
	p.reads(in, in.args[1:]...)
	in.unit, in.width, in.kind = tensor16, 32, kindCollect
	in.members = func(*warp, int) uint32 { return 0xFFFFFFFF }
	d, a, b, c := in.args[0].list, in.args[1].list, in.args[2].list, in.args[3].list
	if in.has("s8") {
		in.unit = tensorInt8
		in.exec = func(w *warp, m uint32) { w.mmaInt8(m, d, a, b, c) }
		return
	}
	in.exec = func(w *warp, m uint32) {
		if m != 0xFFFFFFFF {
			w.trap("divergence", "a tensor product by lanes %08x", m)
		}
		acc := w.b.run.dev.acc
		var ta [16][16]term // row, k
		var tb [8][16]term  // column, k
		for l := range 32 {
			g, k := l/4, l%4*2
			for h := range 2 {
				for j := range 4 {
					ta[g+8*(j%2)][k+8*(j/2)+h] = operand(w.val(&a[j])[l] >> (16 * h))
				}
				for j := range 2 {
					tb[g][k+8*j+h] = operand(w.val(&b[j])[l] >> (16 * h))
				}
			}
		}
		var out [4]lane
		for l := range 32 {
			for j := range 4 {
				row, col := l/4+8*(j/2), l%4*2+j%2
				v, ok := uint32(w.val(&c[j])[l]), true
				if acc.split {
					if v, ok = acc.fused(v, ta[row][:8], tb[col][:8]); ok {
						v, ok = acc.fused(v, ta[row][8:], tb[col][8:])
					}
				} else {
					v, ok = acc.fused(v, ta[row][:], tb[col][:])
				}
				if !ok {
					w.trap("illegal_instruction", "a tensor product of an infinity or NaN, which the machine does not model")
				}
				out[j][l] = uint64(v)
			}
		}
		for j := range 4 {
			w.r[d[j].reg] = out[j]
		}
	}
}

// mmaInt8 is the product of signed bytes, summed modulo 2^32.
func (w *warp) mmaInt8(m uint32, d, a, b, c []arg) {
	if m != 0xFFFFFFFF {
		w.trap("divergence", "a tensor product by lanes %08x", m)
	}
	var ta [16][32]int32 // row, k
	var tb [8][32]int32  // column, k
	for l := range 32 {
		g, k := l/4, l%4*4
		for h := range 4 {
			for j := range 4 {
				ta[g+8*(j%2)][k+16*(j/2)+h] = int32(int8(w.val(&a[j])[l] >> (8 * h)))
			}
			for j := range 2 {
				tb[g][k+16*j+h] = int32(int8(w.val(&b[j])[l] >> (8 * h)))
			}
		}
	}
	var out [4]lane
	for l := range 32 {
		for j := range 4 {
			row, col := l/4+8*(j/2), l%4*2+j%2
			s := int32(w.val(&c[j])[l])
			for k := range 32 {
				s += ta[row][k] * tb[col][k]
			}
			out[j][l] = uint64(uint32(s))
		}
	}
	for j := range 4 {
		w.r[d[j].reg] = out[j]
	}
}
