package ref

import "math/bits"

// shuffles is K10 for a warp: x[word][lane].
func shuffles(x *[4][32]uint32, i uint32) {
	var y [32]uint32
	var b [32]uint32
	for l := range 32 {
		b[l] = x[2][l] ^ i*golden
	}
	var ballot uint32
	for l := range 32 {
		if x[1][l] < b[l] {
			ballot |= 1 << l
		}
	}
	step := int(i)
	for l := range 32 {
		u := x[1][b[l]&31]
		add := func(v uint32) { u = bits.RotateLeft32(u, 5) ^ v }
		add(x[3][l^1<<(step%5)])
		from := func(j int, ok bool) int {
			if ok {
				return j
			}
			return l
		}
		up := l - (1 + step%31)
		add(b[from(up, up >= 0)])
		down := l + 1 + step%29
		down = from(down, down < 32)
		add(x[1][down] ^ x[3][down])
		add(ballot)
		var same uint32
		for k := range 32 {
			if x[3][k]>>28 == x[3][l]>>28 {
				same |= 1 << k
			}
		}
		add(same)
		seg := l + 1 + step%7 // within eight lanes
		inside := seg/8 == l/8
		add(x[1][from(seg, inside)])
		p := uint32(0)
		if inside {
			p = 1
		}
		u = bits.RotateLeft32(u, 5) ^ p ^ uint32(l)
		y[l] = bits.RotateLeft32(x[0][l]^u, 11)
	}
	x[0], x[1], x[2], x[3] = x[1], x[2], x[3], y
}

// shared is K11 for a block. The march over the rest of shared memory adds nothing where nothing is broken.
func shared(x [][4]uint32, i uint32) {
	n := uint32(len(x))
	place := func(t, i uint32) uint32 { return (t*(2*(i%16)+1) + i) & (n - 1) }
	at := make([]uint32, n) // which thread wrote a place
	for t := range n {
		at[place(t, i)] = t
	}
	y := make([]uint32, n)
	for t := range n {
		w := x[at[place(t^(i&(n-1)), i+1)]]
		u := w[1] ^ bits.RotateLeft32(w[2], 9) ^ bits.RotateLeft32(w[3], 17) ^ bits.RotateLeft32(w[3]^w[1], 23) ^ i*golden
		y[t] = bits.RotateLeft32(x[t][0]^u, 11)
	}
	for t := range x {
		x[t] = [4]uint32{x[t][1], x[t][2], x[t][3], y[t]}
	}
}

// atomics is K17 for a block.
func atomics(x [][4]uint32, i uint32) {
	n := uint32(len(x))
	p, q, w := make([]uint32, n), make([]uint32, n), make([]uint64, n)
	for t := range n {
		p[t], q[t], w[t] = x[t][1], x[t][2], uint64(x[t][3])<<32|uint64(x[t][1])
	}
	u := make([]uint32, n)
	for t := range n {
		k := (t*5 + i) & (n - 1)
		a := x[t][2] ^ i*golden
		add := func(v uint32) { u[t] = bits.RotateLeft32(u[t], 5) ^ v }
		u[t] = p[k]
		switch i % 5 {
		case 0:
			p[k] += a
		case 1:
			p[k] ^= a
		case 2:
			p[k] = uint32(min(int32(p[k]), int32(a)))
		case 3:
			p[k] = max(p[k], a)
		default:
			p[k] = a
		}
		add(q[k])
		q[k] &= a
		add(uint32(w[k]))
		add(uint32(w[k] >> 32))
		w[k] += uint64(a)<<32 | uint64(x[t][3])
	}
	for t := range n {
		a := x[t][2] ^ i*golden
		add := func(v uint32) { u[t] = bits.RotateLeft32(u[t], 5) ^ v }
		add(p[t])
		add(p[t])
		if i&1 == 1 {
			p[t] = a
		}
		add(p[t])
		add(q[t])
		add(uint32(w[t]))
		add(uint32(w[t] >> 32))
		y := bits.RotateLeft32(x[t][0]^u[t], 11)
		x[t] = [4]uint32{x[t][1], x[t][2], x[t][3], y}
	}
}

// runWarps and runBlock lay a block's state out as steps of several threads want it.
func runWarps(step func(x *[4][32]uint32, i uint32)) func(b block, warp, steps int) {
	return func(b block, warp, steps int) {
		var x [4][32]uint32
		for w := range x {
			copy(x[w][:], b.w[w*b.threads+warp*32:])
		}
		for i := range steps {
			step(&x, uint32(i))
		}
		for w := range x {
			copy(b.w[w*b.threads+warp*32:][:32], x[w][:])
		}
	}
}

func runBlock(step func(x [][4]uint32, i uint32)) func(b block, warp, steps int) {
	return func(b block, warp, steps int) {
		if warp > 0 {
			return // the whole block is one chain
		}
		x := make([][4]uint32, b.threads)
		for t := range x {
			b.thread(t, x[t][:])
		}
		for i := range steps {
			step(x, uint32(i))
		}
		for t := range x {
			b.store(t, x[t][:])
		}
	}
}
