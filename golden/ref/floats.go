package ref

import (
	"math"
	"math/bits"
)

// pairs is K6 and K6b: two narrow numbers in a word.
func pairs(f format, modes [4][3]uint32) func(x []uint32, i uint32) {
	return func(x []uint32, i uint32) {
		mode := modes[i&3]
		operand := func(v, base uint32) uint32 {
			one := func(h uint32) uint32 { return h&(1<<15|1<<f.man-1|mode[0]<<f.man) + base<<f.man }
			return one(v&0xFFFF) | one(v>>16)<<16
		}
		a, b, c := operand(x[1], mode[1]), operand(x[2]^i*golden, mode[2]), operand(x[3], mode[1])
		d := f.fma(a&0xFFFF, b&0xFFFF, c&0xFFFF) | f.fma(a>>16, b>>16, c>>16)<<16
		y := bits.RotateLeft32(x[0]^d, 11)
		x[0], x[1], x[2], x[3] = x[1], x[2], x[3], y
	}
}

// Mask of the exponent, base of a and c, base of b: near one, wide apart, subnormal, large.
var (
	hfma2 = pairs(binary16, [4][3]uint32{{3, 13, 13}, {7, 8, 8}, {7, 0, 8}, {7, 14, 14}})
	bfma2 = pairs(bfloat16, [4][3]uint32{{7, 120, 120}, {63, 64, 64}, {63, 0, 64}, {63, 126, 126}})
)

// divsqrt is K7. A quotient, reciprocal or root of float32 is one of float64 rounded again: 53 bits are more than twice 24
// and two, so the second rounding cannot go wrong (Figueroa, 1995).
func divsqrt(x []uint32, i uint32) {
	single := func(v uint32) float32 { return math.Float32frombits(v&0x8FFFFFFF + 48<<23) }
	double := func(h, l uint32) float64 { return math.Float64frombits(uint64(h&0x8FFFFFFF+896<<20)<<32 | uint64(l)) }
	key := x[2] ^ i*golden
	a, b := single(x[1]), single(key)
	c, d := double(key, x[3]), double(x[3], x[1])
	var u uint32
	add := func(v uint32) { u = bits.RotateLeft32(u, 5) ^ v }
	add2 := func(v float64) { add(uint32(math.Float64bits(v))); add(uint32(math.Float64bits(v) >> 32)) }
	add(math.Float32bits(a / b))
	add(math.Float32bits(1 / a))
	add(math.Float32bits(float32(math.Sqrt(math.Abs(float64(b))))))
	add2(c / d)
	add2(1 / d)
	add2(math.Sqrt(math.Abs(c)))
	y := bits.RotateLeft32(x[0]^u, 11)
	x[0], x[1], x[2], x[3] = x[1], x[2], x[3], y
}

// conversions is K9.
func conversions(x []uint32, i uint32) {
	a, b, c := x[1], x[2]^i*golden, x[3]
	n := uint64(a)<<32 | uint64(b)
	f := c&0x8F7FFFFF + 112<<23
	g := math.Float32frombits(b&0x9F7FFFFF + 96<<23)
	e := math.Float64frombits(uint64(a&0x81FFFFFF+1007<<20)<<32 | uint64(c))
	var u uint32
	add := func(v uint32) { u = bits.RotateLeft32(u, 5) ^ v }
	add2 := func(v float64) { add(uint32(math.Float64bits(v))); add(uint32(math.Float64bits(v) >> 32)) }
	add(toHalf(f))
	add(fromHalf(c & 0xBFFF))
	add(math.Float32bits(float32(e)))
	add2(float64(math.Float32frombits(f)))
	add(math.Float32bits(float32(a)))
	add(math.Float32bits(float32(int32(b))))
	add(math.Float32bits(float32(n)))
	add2(float64(int64(n)))
	fv := float64(math.Float32frombits(f))
	add(saturate(math.Trunc(float64(g))))
	add(saturate(math.RoundToEven(fv)))
	add(saturate(math.Floor(float64(g))))
	add(saturate(math.Ceil(fv)))
	add(uint32(max(math.Trunc(e), 0))) // below 2^16
	add(uint32(int64(math.RoundToEven(e))))
	y := bits.RotateLeft32(x[0]^u, 11)
	x[0], x[1], x[2], x[3] = x[1], x[2], x[3], y
}

func saturate(v float64) uint32 {
	return uint32(int32(max(min(v, math.MaxInt32), math.MinInt32)))
}

// toHalf rounds a float32 to binary16.
func toHalf(x uint32) uint32 {
	neg, e, sig := binary32.split(x)
	if sig == 0 {
		return x >> 31 << 15
	}
	return binary16.round(neg, sig, e-127-23)
}

// fromHalf is exact.
func fromHalf(h uint32) uint32 {
	neg, e, sig := binary16.split(h)
	if sig == 0 {
		return h >> 15 << 31
	}
	return binary32.round(neg, sig, e-15-10)
}
