package netlist

// FMA16, FMA32 and FMA64 are fused multiply-adds of IEEE 754, rounded once to nearest even, subnormals kept, with the one
// NaN that NVIDIA's units give.
func FMA16() *Netlist { return fusedMultiplyAdd("fma16", 5, 10, 0x7FFF) }

func FMA32() *Netlist { return fusedMultiplyAdd("fma32", 8, 23, 0x7FFFFFFF) }

func FMA64() *Netlist { return fusedMultiplyAdd("fma64", 11, 52, 0x7FF8000000000000) }

// float is a number taken apart.
type float struct {
	sign           net
	exp            bus // of subnormals 1
	sig            bus // with the leading bit
	zero, inf, nan net
}

func (b *builder) unpack(x bus, man int) float {
	frac, exp := x[:man], x[man:len(x)-1]
	normal, full, some := b.anyOf(exp), b.allOf(exp), b.anyOf(frac)
	e := append(bus{b.or(exp[0], b.not(normal))}, exp[1:]...)
	return float{
		sign: x[len(x)-1], exp: e, sig: join(frac, bus{normal}),
		zero: b.not(b.or(normal, some)), inf: b.and(full, b.not(some)), nan: b.and(full, some),
	}
}

// fusedMultiplyAdd is the classic single path: the addend starts left of the product, is shifted right against it, the sum
// is taken with the carry fed back, normalised no further than the smallest exponent, and rounded.
//
// The window has three bits below the product: where the product has a subnormal factor, the addend's first bits below it
// still decide the rounding. top is the biased exponent of the window's first bit.
func fusedMultiplyAdd(name string, expBits, man int, nan uint64) *Netlist {
	b := newBuilder(name, "fused multiply-add, nearest even")
	width := 1 + expBits + man
	A, B, C := b.input("a", width), b.input("b", width), b.input("c", width)
	b.in("unpack")
	fa, fb, fc := b.unpack(A, man), b.unpack(B, man), b.unpack(C, man)
	const low = 3
	p, bias, wide := man+1, uint64(1)<<(expBits-1)-1, expBits+3
	w := low + 3*p + 2

	psign := b.xor(fa.sign, fb.sign)
	subtract := b.xor(psign, fc.sign)
	pzero := b.or(fa.zero, fb.zero)
	b.in("multiply")
	product := join(make(bus, low), b.product(fa.sig, fb.sig, 2*p, nil)).sized(w)

	b.in("exponent")
	// The product's exponent, where it stands in the window, against the addend's.
	ptop := b.plus(b.plus(fa.exp.sized(wide), fb.exp.sized(wide)), constant(uint64(man+4)-bias, wide))
	far, _ := b.minus(ptop, fc.exp.sized(wide))
	first := b.or(pzero, far[wide-1]) // the addend stays where it is
	top := b.pick(first, ptop, fc.exp.sized(wide))
	far = b.gated(b.not(first), far)
	bits := 1
	for 1<<bits < w {
		bits++
	}
	b.in("align")
	gone := b.anyOf(far[bits : wide-1])
	c, lost := b.right(join(make(bus, w-p), fc.sig), far[:bits])
	c = b.gated(b.not(gone), c)
	lost = b.or(b.and(b.not(gone), lost), b.and(gone, b.not(fc.zero)))
	c[0] = b.or(c[0], lost)

	b.in("add")
	sum, above := b.add(product, b.flipIf(subtract, c), zero, true)
	negative := b.and(subtract, b.not(above))
	sum = b.flipIf(negative, sum)

	b.in("normalise")
	// Not below the smallest exponent.
	lead, some := b.leading(sum)
	room := b.plus(top, constant(^uint64(0), wide)) // top - 1, which is not negative
	_, enough := b.minus(room, lead.sized(wide))
	by := b.pick(enough, room[:len(lead)], lead)
	sum = b.normalised(sum, by)
	normal := sum[w-1]
	exp, _ := b.minus(top, by.sized(wide))
	exp = b.gated(normal, exp[:expBits+1])

	b.in("round")
	frac, guard, rest := sum[w-p:w-1], sum[w-p-1], sum[:w-p-1]
	up := b.and(guard, b.or(frac[0], b.anyOf(rest)))
	rounded := b.plusCarry(join(frac, exp), up)
	over := b.or(rounded[man+expBits], b.allOf(rounded[man:man+expBits]))

	b.in("special")
	pinf := b.or(fa.inf, fb.inf)
	invalid := b.or(b.or(b.and(fa.inf, fb.zero), b.and(fa.zero, fb.inf)), b.and(b.and(pinf, fc.inf), subtract))
	isNaN := b.or(b.or(fa.nan, fb.nan), b.or(fc.nan, invalid))
	isInf := b.or(b.or(pinf, fc.inf), over)
	sign := b.and(b.xor(psign, negative), b.not(b.and(subtract, b.not(some))))
	sign = b.mux(pinf, b.mux(fc.inf, sign, fc.sign), psign)
	out := b.pick(isInf, rounded[:man+expBits], join(make(bus, man), constant(^uint64(0), expBits)))
	b.output("d", b.pick(isNaN, append(out, sign), constant(nan, width)))
	return b.done()
}
