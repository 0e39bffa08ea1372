package ref

import "math/bits"

// runMemory runs a kernel whose threads pass words of their state to each other through memory: x[word][thread].
func runMemory(run func(x [][]uint32, steps int)) func(b block, warp, steps int) {
	return func(b block, warp, steps int) {
		if warp > 0 {
			return // the whole block is one chain
		}
		x := make([][]uint32, len(b.w)/b.threads)
		for w := range x {
			x[w] = b.w[w*b.threads:][:b.threads:b.threads]
		}
		run(x, steps)
	}
}

// cached is K13.
func cached(x [][]uint32, steps int) {
	n := uint32(len(x[0]))
	at, y := make([]uint32, n), make([][4]uint32, n)
	for i := range uint32(steps) {
		for t := range n {
			at[(t*5+i)&(n-1)] = t // who stored a place
		}
		for t := range n {
			for j := range uint32(4) {
				q := t ^ i&(n-1)
				if j < 2 {
					q = (t*(2*j+3) + i*7 + j) & (n - 1)
				}
				y[t][j] = bits.RotateLeft32(x[j][t]^x[4+j][at[q]]^i*golden, 11)
			}
		}
		for t := range n {
			for j := range 4 {
				x[j][t], x[4+j][t] = x[4+j][t], y[t][j]
			}
		}
	}
}

// far is K16: what comes back from memory is the other half of another thread's state of one round before.
func far(x [][]uint32, steps int) {
	n := uint32(len(x[0]))
	round := n / 16
	ring := make([][4]uint32, round*n)
	y := make([][4]uint32, n)
	for i := range uint32(steps) {
		chunk := ring[i%round*n:][:n]
		for t := range n {
			for j := range 4 {
				v := uint32(0)
				if i >= round {
					v = chunk[t^33&(n-1)][j]
				}
				y[t][j] = bits.RotateLeft32(x[j][t]^v^bits.RotateLeft32(v, 9)^i*golden, 11)
			}
		}
		for t := range n {
			for j := range 4 {
				chunk[t][j] = x[4+j][t]
				x[j][t], x[4+j][t] = x[4+j][t], y[t][j]
			}
		}
	}
}
