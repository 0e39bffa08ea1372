package ref

import (
	"math"
	"math/bits"
)

// The units by themselves, on operands as bits: what golden/netlist's gates are held to.

// MAD is a·b + c modulo 2^64.
func MAD(a, b uint32, c uint64) uint64 { return uint64(a)*uint64(b) + c }

// LOP3 gives bit i of the table for each three bits, i being 4a + 2b + c.
func LOP3(a, b, c uint32, table uint8) uint32 {
	var r uint32
	for bit := range 32 {
		i := a>>bit&1<<2 | b>>bit&1<<1 | c>>bit&1
		r |= uint32(table>>i&1) << bit
	}
	return r
}

// Funnel shifts hi:lo: the upper half of a left shift, or the lower one of a right shift. n counts modulo 32, with clamp up
// to 32.
func Funnel(lo, hi, n uint32, left, clamp bool) uint32 {
	if clamp {
		n = min(n, 32)
	} else {
		n &= 31
	}
	if left {
		return uint32((uint64(hi)<<32 | uint64(lo)) << n >> 32)
	}
	return uint32((uint64(hi)<<32 | uint64(lo)) >> n)
}

// FMA16 and FMA32 are a·b + c, rounded once to nearest even.
func FMA16(a, b, c uint32) uint32 { return binary16.fma(a, b, c) }

func FMA32(a, b, c uint32) uint32 { return binary32.fma(a, b, c) }

// FMA64 is the same for binary64, with NVIDIA's NaN.
func FMA64(a, b, c uint64) uint64 {
	v := math.FMA(math.Float64frombits(a), math.Float64frombits(b), math.Float64frombits(c))
	if v != v {
		return 0x7FF8000000000000
	}
	return math.Float64bits(v)
}

// Dot16 is c + Σ a·b of binary16 pairs as a tensor core of the Hopper generation sums: each term is cut to 25 fraction bits
// below the largest exponent, the sum is exact, and is cut to binary32. Operands are finite.
func Dot16(a, b []uint16, c uint32) uint32 {
	value := func(x uint64, e, man, bias int) (v float64, exp int) {
		exp = int(x >> man & (1<<e - 1))
		sig := x & (1<<man - 1)
		if exp == 0 {
			exp = 1
		} else {
			sig |= 1 << man
		}
		v = math.Ldexp(float64(sig), exp-bias-man)
		if x>>(e+man)&1 != 0 {
			v = -v
		}
		return v, exp - bias
	}
	first, most := value(uint64(c), 8, 23, 127)
	terms := []float64{first}
	for i := range a {
		x, ex := value(uint64(a[i]), 5, 10, 15)
		y, ey := value(uint64(b[i]), 5, 10, 15)
		if x != 0 && y != 0 {
			most = max(most, ex+ey)
		}
		terms = append(terms, float64(x*y))
	}
	var sum float64 // in units of 2^(most-25): a whole number below 2^32
	for _, t := range terms {
		sum += math.Trunc(math.Ldexp(t, 25-most))
	}
	return cut32(int64(sum), most-25)
}

// cut32 is v · 2^e in binary32, cut toward zero.
func cut32(v int64, e int) uint32 {
	if v == 0 {
		return 0
	}
	var sign uint32
	if v < 0 {
		v, sign = -v, 1<<31
	}
	field := bits.Len64(uint64(v)) - 1 + e + 127
	if field > 254 {
		return sign | binary32.inf()
	}
	unit := max(field, 1) - 127 - 23 // of the last bit kept
	m := uint64(v)
	if by := unit - e; by >= 0 {
		m >>= min(by, 63)
	} else {
		m <<= -by
	}
	if field < 1 {
		return sign | uint32(m)
	}
	return sign | uint32(field)<<23 | uint32(m)&0x7FFFFF
}
