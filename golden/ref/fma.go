package ref

import "math/bits"

// A ladder is a format as K4 and K5 draw operands in it.
type ladder struct {
	man, sign uint   // bits of the fraction; the sign's place
	bias      uint64 // of the exponent
	wide      uint64 // mask of a wide choice of exponents
	top       uint   // the highest bits of a word that say how far something is shifted
	few       uint64 // mask of how many bits a short fraction has
}

var (
	ladder32 = ladder{23, 31, 127, 63, 5, 15}
	ladder64 = ladder{52, 63, 1023, 511, 6, 31}
)

// An operand is a word's sign, its fraction unless it is a power of two, and so much of its exponent, from a base on.
type operand struct {
	mask, base uint64
	power      bool
}

func (l ladder) fraction() uint64 { return 1<<l.man - 1 }

func (l ladder) number(o operand, x uint64) uint64 {
	keep := uint64(1)<<l.sign | o.mask<<l.man
	if !o.power {
		keep |= l.fraction()
	}
	return x&keep + o.base<<l.man
}

// first are the operands of a step's first multiply-add: near one, wide apart, subnormal, large.
func (l ladder) first(p, q, r uint64, i uint32) (a, b, c uint64) {
	half := (l.bias + 1) / 2
	m, ba := l.wide, [4]uint64{l.bias - 15, half, 0, l.bias - 1}[i&3]
	bb := ba
	switch i & 3 {
	case 0:
		m = 15
	case 2:
		bb = half
	}
	return l.number(operand{m, ba, false}, p), l.number(operand{m, bb, false}, q), l.number(operand{m, ba, false}, r)
}

// second are those of its second one, of eight kinds by the step. Where they are sparse, a ends in ones, and b and an addend near the
// opposite have few bits. The product's opposite is the sign that it has not and its exponent, with a fraction of its own, or
// with nearly the product's fraction where b is a power of two.
func (l ladder) second(p, q, r uint64, i uint32) (a, b, c uint64) {
	fraction, sign := l.fraction(), uint64(1)<<l.sign
	ones, few, down := uint64(0), ^uint64(0), uint64(2)
	if i>>5&1 != 0 {
		ones, few, down = fraction>>(r&(1<<l.top-1)), ^(fraction >> (p & l.few)), uint64(l.man)+3
	}
	p, q = p|ones, q&few
	middle, small, large := operand{31, l.bias - 15, false}, operand{l.wide, 0, false}, operand{l.wide, l.bias, false}
	power, below, one, zero := operand{31, l.bias - 15, true}, operand{}, operand{0, l.bias, true}, operand{0, 0, true}
	pick := func(x, y, z operand) (uint64, uint64, uint64) { return l.number(x, p), l.number(y, q), l.number(z, r) }
	exponent := func() uint64 { return (a&^sign)>>l.man<<l.man + (b&^sign)>>l.man<<l.man - l.bias<<l.man }
	opposite := ^(p ^ q) & sign
	switch i >> 2 & 7 {
	case 0: // a sum
		return pick(middle, one, middle)
	case 1: // a product
		return pick(middle, middle, zero)
	case 2:
		a, b, _ = pick(middle, middle, zero)
		return a, b, opposite | (exponent() + (r>>l.man&3)<<l.man - down<<l.man) | r&few&fraction
	case 3:
		a, b, _ = pick(middle, power, zero)
		return a, b, opposite | exponent() | (a^r&fraction>>(r>>(l.sign+1-l.top)))&fraction
	case 4: // subnormal factors
		return pick(below, large, small)
	case 5:
		return pick(large, below, small)
	case 6: // zeros
		return pick(zero, middle, zero)
	}
	return pick(middle, zero, middle)
}

// ffma is K4: three fused multiply-adds a step, the third for what the second left unrounded.
func ffma(x []uint32, i uint32) {
	p, q, r := uint64(x[1]), uint64(x[2]^i*golden), uint64(x[3])
	fma := func(a, b, c uint64) uint32 { return binary32.fma(uint32(a), uint32(b), uint32(c)) }
	u := fma(ladder32.first(p, q, r, i))
	a, b, c := ladder32.second(p, q, r, i)
	d := fma(a, b, c)
	u = bits.RotateLeft32(u, 5) ^ d
	u = bits.RotateLeft32(u, 5) ^ fma(b, a, uint64(d^1<<31))
	y := bits.RotateLeft32(x[0]^u, 11)
	x[0], x[1], x[2], x[3] = x[1], x[2], x[3], y
}

// dfma is K5.
func dfma(x []uint32, i uint32) {
	word := func(k int) uint64 { return uint64(x[2*k+1])<<32 | uint64(x[2*k]) }
	p, q, r := word(1), word(2)^uint64(i)*0x9E3779B97F4A7C15, word(3)
	u := FMA64(ladder64.first(p, q, r, i))
	a, b, c := ladder64.second(p, q, r, i)
	d := FMA64(a, b, c)
	u = bits.RotateLeft64(u, 5) ^ d
	u = bits.RotateLeft64(u, 5) ^ FMA64(b, a, d^1<<63)
	y := word(0) ^ u
	copy(x, x[2:])
	x[6], x[7] = bits.RotateLeft32(uint32(y>>32), 11), bits.RotateLeft32(uint32(y), 19)
}
