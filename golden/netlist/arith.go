package netlist

// A bus is a number's wires, the lowest bit first.
type bus []net

func constant(v uint64, width int) bus {
	b := make(bus, width)
	for i := range b {
		if i < 64 {
			b[i] = net(v >> i & 1)
		}
	}
	return b
}

// sized cuts, or widens by zeros.
func (x bus) sized(n int) bus {
	if len(x) >= n {
		return x[:n]
	}
	return append(append(bus{}, x...), make(bus, n-len(x))...)
}

func join(low, high bus) bus { return append(append(bus{}, low...), high...) }

func (b *builder) each(x bus, f func(net) net) bus {
	out := make(bus, len(x))
	for i := range x {
		out[i] = f(x[i])
	}
	return out
}

func (b *builder) flipIf(s net, x bus) bus {
	return b.each(x, func(v net) net { return b.xor(v, s) })
}
func (b *builder) gated(s net, x bus) bus { return b.each(x, func(v net) net { return b.and(v, s) }) }

// pick is y when s, else x.
func (b *builder) pick(s net, x, y bus) bus {
	out := make(bus, len(x))
	for i := range x {
		out[i] = b.mux(s, x[i], y[i])
	}
	return out
}

// anyOf and allOf are trees.
func (b *builder) anyOf(x bus) net { return b.tree(x, zero, b.or) }
func (b *builder) allOf(x bus) net { return b.tree(x, one, b.and) }

func (b *builder) tree(x bus, empty net, f func(x, y net) net) net {
	switch len(x) {
	case 0:
		return empty
	case 1:
		return x[0]
	}
	return f(b.tree(x[:len(x)/2], empty, f), b.tree(x[len(x)/2:], empty, f))
}

// prefix gives generate and propagate of every group that starts at bit 0, as Brent and Kung (1982) do.
func (b *builder) prefix(g, p bus) (G, P bus) {
	n := len(g)
	if n == 1 {
		return g, p
	}
	var hg, hp bus
	for i := 0; i+1 < n; i += 2 {
		hg = append(hg, b.or(g[i+1], b.and(p[i+1], g[i])))
		hp = append(hp, b.and(p[i+1], p[i]))
	}
	hG, hP := b.prefix(hg, hp)
	G, P = make(bus, n), make(bus, n)
	for i := range n {
		switch {
		case i == 0:
			G[0], P[0] = g[0], p[0]
		case i%2 == 1:
			G[i], P[i] = hG[i/2], hP[i/2]
		default:
			G[i], P[i] = b.or(g[i], b.and(p[i], hG[i/2-1])), b.and(p[i], hP[i/2-1])
		}
	}
	return G, P
}

// add is x + y + carry, with the carry out. around feeds the carry out back in.
func (b *builder) add(x, y bus, carry net, around bool) (sum bus, out net) {
	n := len(x)
	p, g := make(bus, n), make(bus, n)
	for i := range x {
		p[i], g[i] = b.xor(x[i], y[i]), b.and(x[i], y[i])
	}
	G, P := b.prefix(g, p)
	if around {
		carry = G[n-1]
	}
	c := carry
	for i := range n {
		sum = append(sum, b.xor(p[i], c))
		c = b.or(G[i], b.and(P[i], carry))
	}
	if around {
		return sum, carry
	}
	return sum, c
}

func (b *builder) plus(x, y bus) bus {
	s, _ := b.add(x, y, zero, false)
	return s
}

// minus is x - y, and whether x is not below y.
func (b *builder) minus(x, y bus) (bus, net) { return b.add(x, b.each(y, b.not), one, false) }

func (b *builder) plusCarry(x bus, c net) bus {
	s, _ := b.add(x, make(bus, len(x)), c, false)
	return s
}

// columns sums wires by weight, three to two (Dadda, 1965), and adds the last two rows.
func (b *builder) columns(cols [][]net) bus {
	width := len(cols)
	height := 0
	for _, c := range cols {
		height = max(height, len(c))
	}
	var limits []int
	for d := 2; d < height; d = d * 3 / 2 {
		limits = append(limits, d)
	}
	for l := len(limits) - 1; l >= 0; l-- {
		for w := range width {
			for len(cols[w]) > limits[l] {
				c := cols[w]
				var s, carry net
				if len(c) == limits[l]+1 {
					s, carry = b.xor(c[0], c[1]), b.and(c[0], c[1])
					cols[w] = append(append([]net{}, c[2:]...), s)
				} else {
					h := b.xor(c[0], c[1])
					s, carry = b.xor(h, c[2]), b.or(b.and(c[0], c[1]), b.and(h, c[2]))
					cols[w] = append(append([]net{}, c[3:]...), s)
				}
				if w+1 < width {
					cols[w+1] = append(cols[w+1], carry)
				}
			}
		}
	}
	x, y := make(bus, width), make(bus, width)
	for w, c := range cols {
		if len(c) > 0 {
			x[w] = c[0]
		}
		if len(c) > 1 {
			y[w] = c[1]
		}
	}
	return b.plus(x, y)
}

// product is x · y, with other wires added by weight, modulo 2^width.
func (b *builder) product(x, y bus, width int, more bus) bus {
	cols := make([][]net, width)
	for i := range x {
		for j := range y {
			if w := i + j; w < width {
				cols[w] = append(cols[w], b.and(x[i], y[j]))
			}
		}
	}
	for i, m := range more {
		cols[i] = append(cols[i], m)
	}
	return b.columns(cols)
}

// right is x >> n, and whether a bit was lost.
func (b *builder) right(x bus, n bus) (bus, net) {
	var lost net
	for k := len(n) - 1; k >= 0; k-- {
		by := min(1<<k, len(x))
		lost = b.or(lost, b.and(n[k], b.anyOf(x[:by])))
		x = b.pick(n[k], x, join(x[by:], make(bus, by)))
	}
	return x, lost
}

// normalised is x << n, where x has at least n zeros at its top: what is shifted out needs no gate that says so.
func (b *builder) normalised(x bus, n bus) bus {
	for k := len(n) - 1; k >= 0; k-- {
		by := min(1<<k, len(x))
		out := make(bus, len(x))
		for i := range x {
			from := zero
			if i >= by {
				from = x[i-by]
			}
			if i >= len(x)-by {
				out[i] = b.or(x[i], b.and(n[k], from))
			} else {
				out[i] = b.mux(n[k], x[i], from)
			}
		}
		x = out
	}
	return x
}

// leading counts zeros from the top; some says that x is not zero. Of zero the count is of no meaning.
func (b *builder) leading(x bus) (count bus, some net) {
	if len(x) == 1 {
		return nil, x[0]
	}
	half := 1
	for half*2 < len(x) {
		half *= 2
	}
	// The upper half has a power of two of bits; what is below it is filled up with zeros.
	hi, lo := x[len(x)-half:], join(make(bus, 2*half-len(x)), x[:len(x)-half])
	ch, sh := b.leading(hi)
	cl, sl := b.leading(lo)
	return append(b.pick(sh, cl, ch), b.not(sh)), b.or(sh, sl)
}

// larger is the greater of x and y, and whether that is x or both.
func (b *builder) larger(x, y bus) (bus, net) {
	_, ge := b.minus(x, y)
	return b.pick(ge, y, x), ge
}
