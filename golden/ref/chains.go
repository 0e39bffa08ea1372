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

func ffma(x []uint32, i uint32) {
	m := uint32(63)
	ba := [4]uint32{112, 64, 0, 126}[i&3]
	bb := ba
	switch i & 3 {
	case 0:
		m = 15
	case 2:
		bb = 64
	}
	operand := func(x, base uint32) uint32 { return x&(0x807FFFFF|m<<23) + base<<23 }
	d := binary32.fma(operand(x[1], ba), operand(x[2]^i*golden, bb), operand(x[3], ba))
	y := bits.RotateLeft32(x[0]^d, 11)
	x[0], x[1], x[2], x[3] = x[1], x[2], x[3], y
}
