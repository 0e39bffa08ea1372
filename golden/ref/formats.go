package ref

import (
	"math"
	"math/bits"
)

// An intFormat is a tensor product of integers, or of single bits, whose sums are modulo 2^32.
type intFormat struct {
	bits      int // of an element: 8, 4 or 1, of which 1 is unsigned and means AND and a count
	rows      int // of A: 16, or 8, where A and B are one word a lane
	unsignedB bool
}

// dot is the sum of products of two words' elements.
func (f intFormat) dot(a, b uint32) (s uint32) {
	if f.bits == 1 {
		return uint32(bits.OnesCount32(a & b))
	}
	top := 32 - f.bits
	for h := 0; h < 32; h += f.bits {
		x, y := int32(a>>h<<top)>>top, int32(b>>h<<top)>>top
		if f.unsignedB {
			y = int32(b >> h << top >> top)
		}
		s += uint32(x * y)
	}
	return s
}

// mmaInts is one step of K18i, K18j, K18q and K18x.
func mmaInts(f intFormat) func(x *[10][32]uint32, i uint32, _ func(*tile)) {
	deep := f.rows / 8 // words of A along a row in a lane, and of B
	return func(x *[10][32]uint32, i uint32, _ func(*tile)) {
		y := [4][32]uint32{x[0], x[1], x[2], x[3]}
		results := f.rows / 4
		row := func(lane, j int) int { return lane/4 + 8*(j/2) }
		col := func(lane, j int) int { return lane%4*2 + j%2 }
		var acc [16][8]uint32
		for lane := range 32 {
			for j := range results {
				acc[row(lane, j)][col(lane, j)] = bits.RotateLeft32(x[6+j][lane], 9) ^ i*golden
			}
		}
		var a [16][8]uint32 // words along k, by row
		var b [8][8]uint32  // by column
		for j := range 4 {
			key := (i*4 + uint32(j)) * 0x85EBCA6B
			for lane := range 32 {
				word := func(w int) uint32 { return bits.RotateLeft32(x[4+w][lane], 8*j) ^ key }
				for d := range deep {
					for r := range deep {
						a[lane/4+8*r][4*d+lane%4] = word(deep*d + r)
					}
					b[lane/4][4*d+lane%4] = word(deep*deep + d)
				}
			}
			for r := range f.rows {
				for c := range 8 {
					for k := range 4 * deep {
						acc[r][c] += f.dot(a[r][k], b[c][k])
					}
				}
			}
			for lane := range 32 {
				for d := range 4 {
					y[d][lane] = bits.RotateLeft32(y[d][lane]^acc[row(lane, d%results)][col(lane, d%results)], 5+6*d)
				}
			}
		}
		advance(x, y)
	}
}

// advance is the end of a step: the right half becomes the left, and y the last four words.
func advance(x *[10][32]uint32, y [4][32]uint32) {
	for w := range 6 {
		x[w] = x[w+4]
	}
	for j := range 4 {
		x[6+j] = y[j]
	}
}

// mmaFP8 is one step of K19. Sums are in units of u/2.
func mmaFP8(x *[10][32]uint32, i uint32, _ func(*tile)) {
	y := [4][32]uint32{x[0], x[1], x[2], x[3]}
	for j := range 4 {
		key := (i*4 + uint32(j)) * 0x85EBCA6B
		ma, mb := 3-j&1, 3-j>>1
		signed := func(word uint32, h, m int) int32 {
			b := word >> (8 * h)
			v := int32(b&(1<<m-1) | 1<<m)
			if b&0x80 != 0 {
				return -v
			}
			return v
		}
		var a [16][32]int32
		var b [32][8]int32
		for lane := range 32 {
			word := func(w int) uint32 { return bits.RotateLeft32(x[w][lane], 8*j) ^ key }
			g, q := lane/4, lane%4
			for h := range 4 {
				for d := range 2 {
					k := 16*d + 4*q + h
					a[g][k], a[g+8][k] = signed(word(4+2*d), h, ma), signed(word(5+2*d), h, ma)
					b[k][g] = signed(word(8+d), h, mb)
				}
			}
		}
		for lane := range 32 {
			for d := range 4 {
				r, c := lane/4+8*(d/2), lane%4*2+d%2
				w := bits.RotateLeft32(x[6+d][lane], 9+7*j) ^ key
				sum := int64(w>>15&0xFF)<<1 | 1<<9 | 1
				if w>>31 != 0 {
					sum = -sum
				}
				for k := range 32 {
					sum += 2 * int64(a[r][k]*b[k][c])
				}
				if sum <= -1<<14 || sum >= 1<<14 {
					panic("ref: an FP8 sum outside the exact range")
				}
				s, t := (r*5+int(i))&3, (c*3+int(i))&3
				y[d][lane] = bits.RotateLeft32(y[d][lane]^exactFloat(sum, s+t-ma-mb-1), 5+6*d)
			}
		}
	}
	advance(x, y)
}

// runDouble is K18d. Sums are in units of u/2.
func runDouble(b block, warp, steps int) {
	var x [8][32]uint32
	for w := range x {
		copy(x[w][:], b.w[w*b.threads+warp*32:])
	}
	for i := range uint32(steps) {
		dmma(&x, i)
	}
	for w := range x {
		copy(b.w[w*b.threads+warp*32:][:32], x[w][:])
	}
}

func dmma(x *[8][32]uint32, i uint32) {
	y := [4][32]uint32{x[0], x[1], x[2], x[3]}
	signed := func(h, l uint32, narrow bool) int64 {
		v := int64(h&0xFFFFF)<<10 | int64(l>>22) | 1<<30
		if narrow {
			v = int64(h&0xFFFFF>>5 | 1<<15)
		}
		if h>>31 != 0 {
			return -v
		}
		return v
	}
	var acc [8][8]int64
	for lane := range 32 {
		for j := range 2 {
			v := uint64(bits.RotateLeft32(x[4+2*j][lane], 9))<<32 | uint64(bits.RotateLeft32(x[5+2*j][lane], 13))
			v ^= uint64(i) * 0x9E3779B97F4A7C15
			c := int64(v&0xFFFFFFFFFFFF8|4|1<<52) >> 2
			if v>>63 != 0 {
				c = -c
			}
			acc[lane/4][lane%4*2+j] = c
		}
	}
	for j := range 4 {
		key := (i*4 + uint32(j)) * 0x85EBCA6B
		var a [8][4]int64
		var b [4][8]int64
		for lane := range 32 {
			word := func(w int) uint32 { return bits.RotateLeft32(x[w][lane], 8*j) ^ key }
			a[lane/4][lane%4] = signed(word(4), word(5), j&1 == 1)
			b[lane%4][lane/4] = signed(word(6), word(7), j&1 == 0)
		}
		for r := range 8 {
			for c := range 8 {
				for k := range 4 {
					acc[r][c] += 2 * a[r][k] * b[k][c]
				}
			}
		}
		for lane := range 32 {
			for d := range 2 {
				r, c := lane/4, lane%4*2+d
				v := acc[r][c]
				if v == 0 || v <= -1<<53 || v >= 1<<53 {
					panic("ref: an FP64 sum outside the exact range")
				}
				s, t := (r*5+int(i))&3, (c*3+int(i))&3
				e := math.Float64bits(math.Ldexp(float64(v), s+t-46))
				y[2*d][lane] = bits.RotateLeft32(y[2*d][lane]^uint32(e), 5+12*d)
				y[2*d+1][lane] = bits.RotateLeft32(y[2*d+1][lane]^uint32(e>>32), 11+12*d)
			}
		}
	}
	for j := range 4 {
		x[j], x[4+j] = x[4+j], y[j]
	}
}
