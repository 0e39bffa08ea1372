package netlist

// MAD is the integer multiply-add: a·b + c modulo 2^64. View 1 shows the low half only, view 2 the high one.
func MAD() *Netlist {
	b := newBuilder("mad32", "32-bit integer multiply-add, 64-bit result")
	x, y, c := b.input("a", 32), b.input("b", 32), b.input("c", 64)
	b.in("multiply")
	b.output("d", b.product(x, y, 64, c))
	return b.done(View{0xFFFFFFFF}, View{0xFFFFFFFF << 32})
}

// LOP3 is any function of three bits, 32 times.
func LOP3() *Netlist {
	b := newBuilder("lop3", "any function of three words, bit by bit")
	x, y, z, t := b.input("a", 32), b.input("b", 32), b.input("c", 32), b.input("table", 8)
	out := make(bus, 32)
	for i := range out {
		in := t
		for _, s := range []net{x[i], y[i], z[i]} {
			in = b.pick(s, in[:len(in)/2], in[len(in)/2:])
		}
		out[i] = in[0]
	}
	b.output("d", out)
	return b.done()
}

// Shifter is the funnel shift of hi:lo by n: the upper half of a left shift, the lower one of a right shift. n counts modulo
// 32, or up to 32 with clamp.
func Shifter() *Netlist {
	b := newBuilder("shift", "funnel shift of 64 bits to 32")
	lo, hi, n, left, clamp := b.input("lo", 32), b.input("hi", 32), b.input("n", 32), b.input("left", 1)[0], b.input("clamp", 1)[0]
	all := b.and(clamp, b.anyOf(n[5:])) // by 32
	by := append(b.gated(b.not(all), n[:5]), all)
	// A left shift by n is a right one by 32 - n.
	back, _ := b.minus(constant(32, 6), by)
	by = b.pick(left, by, back)
	x := join(lo, hi)
	// By 32 is by nothing else: of the upper half only what a lower stage needs goes on, and that is then not looked at.
	x = join(b.pick(by[5], x[:32], x[32:]), x[32:63])
	for k := 4; k >= 0; k-- {
		w := 32 + 1<<k - 1
		x = b.pick(by[k], x[:w], x[1<<k:].sized(w))
	}
	b.output("d", x)
	return b.done()
}

// Adder64 is the adder of addresses: base + offset modulo 2^64. View 1 shows the low half only.
func Adder64() *Netlist {
	b := newBuilder("address64", "64-bit address adder")
	b.output("d", b.plus(b.input("base", 64), b.input("offset", 64)))
	return b.done(View{0xFFFFFFFF})
}
