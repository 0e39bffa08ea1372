package ref

import "math/bits"

const golden = 0x9E3779B9 // 2^32 over the golden ratio: the round constant's step

// Each function below is one step of the kernel of its name, on the state x of one thread.

func imad(x []uint32, i uint32) {
	q := uint64(x[0]^i*golden)<<32 | uint64(x[1])
	p := uint64(x[0])*uint64(x[1]) + q
	c, d := bits.RotateLeft32(x[2]^uint32(p), 7), bits.RotateLeft32(x[3]^uint32(p>>32), 13)
	x[0], x[1], x[2], x[3] = c, d, x[0], x[1]
}

// sums is K3b.
func sums(x []uint32, i uint32) {
	word := func(k int) uint64 { return uint64(x[2*k+1])<<32 | uint64(x[2*k]) }
	key := uint64(i) * 0x9E3779B97F4A7C15
	a, b := word(1), word(2)^key
	if i&1 != 0 {
		b = ^a ^ b>>(word(3)&63)
	}
	d := a + b
	y := word(0) ^ d ^ bits.RotateLeft64((word(3)^key)+d, 23)
	copy(x, x[2:])
	x[6], x[7] = bits.RotateLeft32(uint32(y>>32), 11), bits.RotateLeft32(uint32(y), 19)
}
