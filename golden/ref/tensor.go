package ref

import "math/bits"

// A tile is one warp's product: its operands as the integers they stand for, and the exact sum.
//
// Unit is u/2 of the kernel: C an odd multiple of it, products even ones.
type tile struct {
	a [16][16]int32 // row, k: an f16 without the powers of row and k, in units of 2^-10 or 2^-4
	b [16][8]int32  // k, column: likewise in the other unit
}

// significand is the signed integer that an f16's sign and fraction give once exponent and the cleared low bits are
// taken off: 2^10 + fraction, over 2^6 when narrow.
func significand(h uint32, narrow bool) int32 {
	v := int32(h&0x3FF) | 0x400
	if narrow {
		v = int32(h&0x3C0|0x400) >> 6
	}
	if h&0x8000 != 0 {
		return -v
	}
	return v
}

// wholeBF16 is the signed integer of a bf16's fraction, its exponent taken off.
func wholeBF16(h uint32, _ bool) int32 {
	v := int32(h&0x7F | 0x80)
	if h&0x8000 != 0 {
		return -v
	}
	return v
}

// wholeTF32 is likewise the signed integer of a tf32: 2^10 + fraction, over 2^6 when narrow.
func wholeTF32(x uint32, narrow bool) int32 {
	v := int32(x>>13&0x3FF) | 0x400
	if narrow {
		v = int32(x>>19&0xF | 0x10)
	}
	if x>>31 != 0 {
		return -v
	}
	return v
}

// An operands fills in what lane gives to product j of a step: word is a word of its state, turned and keyed.
type operands func(t *tile, lane, j int, word func(w int) uint32)

// halves are operands of two numbers a word, m16n8k16, and m16n8k8 when short.
func halves(significand func(h uint32, narrow bool) int32, short bool) operands {
	return func(t *tile, lane, j int, word func(w int) uint32) {
		g, k := lane/4, lane%4*2
		for h := range 2 {
			half := func(w int) uint32 { return word(w) >> (16 * h) }
			t.a[g][k+h], t.a[g+8][k+h] = significand(half(4), j&1 == 1), significand(half(5), j&1 == 1)
			t.b[k+h][g] = significand(half(8), j&1 == 0)
			if short {
				continue
			}
			t.a[g][k+8+h], t.a[g+8][k+8+h] = significand(half(6), j&1 == 1), significand(half(7), j&1 == 1)
			t.b[k+8+h][g] = significand(half(9), j&1 == 0)
		}
	}
}

// whole are operands of one number a word, m16n8k8.
func whole(t *tile, lane, j int, word func(w int) uint32) {
	g, k := lane/4, lane%4
	for h := range 2 {
		t.a[g][k+4*h], t.a[g+8][k+4*h] = wholeTF32(word(4+2*h), j&1 == 1), wholeTF32(word(5+2*h), j&1 == 1)
		t.b[k+4*h][g] = wholeTF32(word(8+h), j&1 == 0)
	}
}

// mmaF16, mmaBF16, mmaF16k8 and mmaTF32 are one step of K18, K18b, K18h and K18t for a warp whose state is x[word][lane].
// tiles, when not nil, is told of every product.
func mmaF16(x *[10][32]uint32, i uint32, tiles func(*tile)) {
	mmaFloat(x, i, halves(significand, false), tiles)
}

func mmaBF16(x *[10][32]uint32, i uint32, tiles func(*tile)) {
	mmaFloat(x, i, halves(wholeBF16, false), tiles)
}

func mmaF16k8(x *[10][32]uint32, i uint32, tiles func(*tile)) {
	mmaFloat(x, i, halves(significand, true), tiles)
}

func mmaTF32(x *[10][32]uint32, i uint32, tiles func(*tile)) { mmaFloat(x, i, whole, tiles) }

func mmaFloat(x *[10][32]uint32, i uint32, fill operands, tiles func(*tile)) {
	var acc [16][8]int64
	y := [4][32]uint32{x[0], x[1], x[2], x[3]}
	row := func(lane, j int) int { return lane/4 + 8*(j/2) }
	col := func(lane, j int) int { return lane%4*2 + j%2 }
	for lane := range 32 {
		for j := range 4 {
			// The fraction, its leading bit at 23, has its lowest bit at u/4: bit 1 is set, bit 0 clear.
			bitsOf := bits.RotateLeft32(x[6+j][lane], 9) ^ i*golden
			v := int64(bitsOf&0x7FFFFC|2|1<<23) >> 1
			if bitsOf>>31 != 0 {
				v = -v
			}
			acc[row(lane, j)][col(lane, j)] = v
		}
	}
	for j := range 4 {
		var t tile
		key := (i*4 + uint32(j)) * 0x85EBCA6B
		for lane := range 32 {
			fill(&t, lane, j, func(w int) uint32 { return bits.RotateLeft32(x[w][lane], 8*j) ^ key })
		}
		for r := range 16 {
			for k := range 16 {
				a := int64(t.a[r][k])
				for c := range 8 {
					acc[r][c] += 2 * a * int64(t.b[k][c])
				}
			}
		}
		if tiles != nil {
			tiles(&t)
		}
		for lane := range 32 {
			for d := range 4 {
				// u/2 = 2^(s + t - 18), s and t the powers of this row and column.
				r, c := uint32(row(lane, d)), uint32(col(lane, d))
				s, t := (r*5+i)&3, (c*3+i)&3
				y[d][lane] = bits.RotateLeft32(y[d][lane]^exactFloat(acc[r][c], int(s+t)-18), 5+6*d)
			}
		}
	}
	for w := range 6 {
		x[w] = x[w+4]
	}
	for j := range 4 {
		x[6+j] = y[j]
	}
}

// exactFloat gives v · 2^e as a normal binary32. v is not zero and has at most 24 significant bits: else the kernel's data
// would break its own exactness rule, and there is no golden.
func exactFloat(v int64, e int) uint32 {
	neg := v < 0
	if neg {
		v = -v
	}
	if v == 0 || v >= 1<<24 {
		panic("ref: a tensor sum outside the exact range")
	}
	return binary32.round(neg, uint64(v), e)
}
