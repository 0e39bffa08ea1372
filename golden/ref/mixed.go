package ref

import "math/bits"

// lop3 folds all 256 tables. As sums of minterms they need no loop over bits.
func lop3(x []uint32, i uint32) {
	a, b, c := x[1], x[2]^i*golden, x[3]
	var term [8]uint32
	for k := range uint32(8) {
		p, q, r := a, b, c
		if k&4 == 0 {
			p = ^p
		}
		if k&2 == 0 {
			q = ^q
		}
		if k&1 == 0 {
			r = ^r
		}
		term[k] = p & q & r
	}
	var u uint32
	for t := range uint32(256) {
		var v uint32
		for m := t; m != 0; m &= m - 1 {
			v |= term[bits.TrailingZeros32(m)]
		}
		u = bits.RotateLeft32(u, 1) ^ v
	}
	y := bits.RotateLeft32(x[0]^u, 9)
	x[0], x[1], x[2], x[3] = x[1], x[2], x[3], y
}

func mixed(x []uint32, i uint32) {
	a, b, c := x[1], x[2]^i*golden, x[3]
	var u uint32
	add := func(v uint32) { u = bits.RotateLeft32(u, 3) ^ v }
	add(c + dot4(a, b, false))
	add(a + dot4(b, c, true))
	add(uint32(uint64(a) * uint64(b) >> 32))
	add(uint32(int64(int32(b))*int64(int32(c))>>32) + a)
	add(permute(a, b, c))
	add(bits.Reverse32(b))
	add(uint32(bits.OnesCount32(a)))
	add(uint32(bits.LeadingZeros32(c)))
	if int32(b) < 0 {
		add(uint32(bits.Len32(^b) - 1))
	} else {
		add(uint32(bits.Len32(b) - 1))
	}
	add(uint32(uint64(a) >> (b & 31) & (1<<(c&31) - 1)))
	add(field(b, c&31, a&31))
	pos, n := c&31, c>>5&31
	mask := uint32(1<<n-1) << pos
	add(b&^mask | a<<pos&mask)
	add(uint32(min(int32(a), int32(b))))
	add(max(b, c))
	add(max(a, b) - min(a, b) + c)
	add(uint32((uint64(b)<<32 | uint64(a)) >> (c & 31)))
	lo, carry := bits.Add32(a, b, 0)
	add(lo)
	add(b + c + carry)
	num, den := uint64(a)<<32|uint64(b), uint64(c&0xFFFF)<<32|uint64(b^c)|1
	add(uint32(num / den))
	add(uint32(num % den))
	add(uint32(num % den >> 32))
	y := bits.RotateLeft32(x[0]^u, 11)
	x[0], x[1], x[2], x[3] = x[1], x[2], x[3], y
}

// dot4 sums the products of four bytes.
func dot4(a, b uint32, signed bool) uint32 {
	var s uint32
	for k := 0; k < 32; k += 8 {
		if signed {
			s += uint32(int32(int8(a>>k)) * int32(int8(b>>k)))
		} else {
			s += uint32(uint8(a>>k)) * uint32(uint8(b>>k))
		}
	}
	return s
}

// permute picks four of eight bytes by the nibbles of c; a nibble's top bit asks for the byte's sign instead.
func permute(a, b, c uint32) uint32 {
	all := [8]byte{byte(a), byte(a >> 8), byte(a >> 16), byte(a >> 24), byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)}
	var r uint32
	for k := range 4 {
		s := c >> (4 * k) & 15
		v := all[s&7]
		if s&8 != 0 {
			v = byte(int8(v) >> 7)
		}
		r |= uint32(v) << (8 * k)
	}
	return r
}

// field is the signed bit field of n bits at pos; where it runs out of the word the sign is the word's own.
func field(x, pos, n uint32) uint32 {
	if n == 0 {
		return 0
	}
	if pos+n > 32 {
		return uint32(int32(x) >> pos)
	}
	return uint32(int32(x<<(32-pos-n)) >> (32 - n))
}

// branches is K24: what the lanes' own bits make of them.
func branches(x []uint32, i uint32) {
	b, u, s := x[2]^i*golden, x[3], x[1]
	if s&1 != 0 {
		if s&2 != 0 {
			u += x[1]
		} else {
			u ^= b
		}
		u *= 0x85EBCA6B
	} else {
		u -= b
		if s&4 != 0 {
			u = ^u
		}
	}
	switch {
	case s&8 != 0:
		for k := s >> 4 & 7; k > 0; k-- {
			u = u*0x9E3779B1 + x[1]
			if u&1 != 0 {
				break
			}
		}
	case s&0x100 != 0:
		u = bits.RotateLeft32(u, 13)
	default:
		u += x[1] * b
	}
	y := bits.RotateLeft32(x[0]^u, 11)
	x[0], x[1], x[2], x[3] = x[1], x[2], x[3], y
}
