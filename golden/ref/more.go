package ref

import (
	"math"
	"math/bits"
)

// registers is K12.
func registers(x []uint32, i uint32) {
	n := uint32(len(x))
	for w := range n {
		x[w] = bits.RotateLeft32(x[w]^x[(w+1)%n]^(i*n+w)*golden, int(1+w%31))
	}
}

// straight is K14.
func straight(x []uint32, i uint32) {
	x[0] ^= i * golden
	for k := range uint32(4352) {
		x[k%4] = bits.RotateLeft32(x[k%4]+x[(k+1)%4]*((k+1)*0x9E3779B1|1), 7)
	}
}

// table is K14c's.
var table = func() (t [4096]uint32) {
	for k := range t {
		v := uint32(k)*golden + 0x7F4A7C15
		v ^= v >> 16
		v *= 0x7FEB352D
		v ^= v >> 15
		v *= 0x846CA68B
		t[k] = v ^ v>>16
	}
	return t
}()

// constants is K14c.
func constants(x []uint32, i uint32) {
	b := x[2] ^ i*golden
	u := table[x[1]&4095]
	u = bits.RotateLeft32(u, 5) ^ table[b>>7&4095]
	u = bits.RotateLeft32(u, 5) ^ table[x[3]>>20]
	u = bits.RotateLeft32(u, 5) ^ table[i*613&4095]
	y := bits.RotateLeft32(x[0]^u^x[1], 11)
	x[0], x[1], x[2], x[3] = x[1], x[2], x[3], y
}

// slices is K15: whichever block's input is read, without its key it is this one's own.
func slices(x [][]uint32, steps int) {
	n := uint32(len(x[0]))
	in := make([][]uint32, len(x))
	for w := range x {
		in[w] = append([]uint32{}, x[w]...)
	}
	for i := range uint32(steps) {
		for t := range n {
			q := (t + i*37) & (n - 1)
			for w := range 4 {
				v := in[w][q] ^ bits.RotateLeft32(in[w+4][q], 9)
				y := bits.RotateLeft32(x[w][t]^v^bits.RotateLeft32(x[w+4][t], 3)*0x85EBCA6B^i*golden, 11)
				x[w][t], x[w+4][t] = x[w+4][t], y
			}
		}
	}
}

// reductions is K10b for a warp.
func reductions(x *[4][32]uint32, i uint32) {
	sum, xor, least, most, all, any := uint32(0), uint32(0), int32(math.MaxInt32), uint32(0), ^uint32(0), uint32(0)
	for l := range 32 {
		b, p, q := x[2][l]^i*golden, x[1][l], x[3][l]
		sum += p
		xor ^= b
		least = min(least, int32(q))
		most = max(most, bits.RotateLeft32(p, 7))
		all &= q | b | p | bits.RotateLeft32(b, 11) | 0xF0F0F0F0
		any |= q & b & p & bits.RotateLeft32(b, 11)
	}
	u := sum
	for _, v := range []uint32{xor, uint32(least), most, all, any} {
		u = bits.RotateLeft32(u, 5) ^ v
	}
	for l := range 32 {
		y := bits.RotateLeft32(x[0][l]^u^x[1][l], 11)
		x[0][l], x[1][l], x[2][l], x[3][l] = x[1][l], x[2][l], x[3][l], y
	}
}

// uniform is K26 for a thread: the chain that all share starts anew with it.
func uniform(x []uint32, steps int) {
	a, b, c, d := uint32(0x243F6A88), uint32(0x85A308D3), uint32(0x13198A2E), uint32(0x03707344)
	for i := range uint32(steps) {
		f := b*c + d
		f = bits.RotateLeft32(f, 7) ^ (b&^c | d)
		f += uint32(bits.OnesCount32(c^f)) << 3
		f = bits.RotateLeft32(f^bits.Reverse32(d), 9) - b>>5
		if f < c {
			f = f + 0x85EBCA6B + f<<4
		} else {
			f = f ^ d + f<<4
		}
		a, b, c, d = b, c, d, bits.RotateLeft32(a^f^i*golden, 11)
		y := bits.RotateLeft32(x[0]^d^x[1]^bits.RotateLeft32(x[2], 3)^bits.RotateLeft32(x[3], 6), 11)
		x[0], x[1], x[2], x[3] = x[1], x[2], x[3], y
	}
}

// misc is K27.
func misc(x []uint32, i uint32) {
	a, b, c := x[1], x[2]^i*golden, x[3]
	var u uint32
	add := func(v uint32) { u = bits.RotateLeft32(u, 5) ^ v }
	r, carry := bits.Add32(a, b, 0)
	u = r
	r, carry = bits.Add32(b, c, carry)
	add(r)
	r, carry = bits.Add32(c, a, carry)
	add(r)
	add(a + a + carry)
	r, carry = bits.Sub32(a, b, 0)
	add(r)
	r, carry = bits.Sub32(b, c, carry)
	add(r)
	add(c - a - carry)
	p := uint64(a) * uint64(b)
	r, carry = bits.Add32(uint32(p), c, 0)
	add(r)
	add(uint32(p>>32) + c + carry)
	lt, hi, zero := int32(a) < int32(b), b > c, c&3 == 0
	v := (lt && hi) != zero
	r = c
	if v {
		r = a
	}
	if !(lt || v) {
		r ^= b
	}
	if !lt {
		r += c
	}
	add(r)
	add(uint32(max(min(int32(a), int32(b)), int32(c))))
	add(uint32(max(int32(b)+int32(c), int32(a))))
	r = c
	for k := 0; k < 32; k += 8 {
		d := int32(a>>k&0xFF) - int32(b>>k&0xFF)
		r += uint32(max(d, -d))
	}
	add(r)
	single := func(w uint32) float32 { return math.Float32frombits(w & 0xBFFFFFFF) }
	double := func(h, l uint32) float64 { return math.Float64frombits(uint64(h&0xBFFFFFFF)<<32 | uint64(l)) }
	add(math.Float32bits(min(single(a), single(c)))) // -0 is below +0 in Go too
	add(math.Float32bits(max(single(b), single(c))))
	if single(a) >= single(b) {
		add(b)
	} else {
		add(c)
	}
	least := math.Float64bits(min(double(a, b), double(b, c)))
	add(uint32(least))
	add(uint32(least >> 32))
	if double(c, a) < double(a, b) {
		add(a)
	} else {
		add(b)
	}
	y := bits.RotateLeft32(x[0]^u, 11)
	x[0], x[1], x[2], x[3] = x[1], x[2], x[3], y
}
