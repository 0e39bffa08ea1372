package ptxvm

import (
	"math/bits"
)

var builders map[string]func(*parser, *inst)

func init() {
	builders = map[string]func(*parser, *inst){
		"add": addSub, "sub": addSub, "mul": mul, "mad": mad, "fma": fma, "div": div, "rem": rem, "neg": neg, "abs": absOp,
		"min": minMax, "max": minMax, "and": logic, "or": logic, "xor": logic, "not": not, "cnot": not, "lop3": lop3Op,
		"shl": shl, "shr": shr, "shf": shf, "prmt": prmt, "brev": unary, "popc": unary, "clz": unary, "bfind": unary,
		"bfe": bfe, "bfi": bfi, "dp4a": dp4a, "sad": sad, "vabsdiff4": vabsdiff4, "addc": carry, "subc": carry, "madc": carry,
		"setp": setp, "set": setp, "selp": selp, "slct": selp, "mov": mov, "cvt": cvtOp, "cvta": cvta,
		"sqrt": root, "rcp": root, "rsqrt": approx, "sin": approx, "cos": approx, "lg2": approx, "ex2": approx, "tanh": approx,
		"ld": ld, "st": st, "ldu": ld, "atom": atom, "red": atom, "membar": fence, "fence": fence,
		"bra": bra, "ret": ret, "exit": ret, "bar": bar, "barrier": bar, "nanosleep": nanosleep, "trap": trapOp,
		"shfl": shfl, "vote": vote, "match": match, "redux": redux, "activemask": activemask, "mma": mma,
	}
}

// val is an operand's value in every lane.
func (w *warp) val(a *arg) *lane {
	if a.kind == argReg {
		return &w.r[a.reg]
	}
	return a.imm
}

// all runs f for each lane of m.
func all(m uint32, f func(l int)) {
	for ; m != 0; m &= m - 1 {
		f(bits.TrailingZeros32(m))
	}
}

func (p *parser) set1(in *inst, u Unit, t typ, f func(x uint64) uint64) {
	p.arity(in, 2)
	p.writes(in, in.args[0])
	p.reads(in, in.args[1])
	in.unit, in.width = u, t.bits
	d, a := p.reg(in, in.args[0]), in.args[1]
	in.exec = func(w *warp, m uint32) {
		D, A := &w.r[d], w.val(&a)
		for l := range 32 {
			if m>>l&1 != 0 {
				D[l] = f(A[l])
			}
		}
	}
}

func (p *parser) set2(in *inst, u Unit, t typ, f func(x, y uint64) uint64) {
	p.arity(in, 3)
	p.writes(in, in.args[0])
	p.reads(in, in.args[1:]...)
	in.unit, in.width = u, t.bits
	d, a, b := p.reg(in, in.args[0]), in.args[1], in.args[2]
	in.exec = func(w *warp, m uint32) {
		D, A, B := &w.r[d], w.val(&a), w.val(&b)
		for l := range 32 {
			if m>>l&1 != 0 {
				D[l] = f(A[l], B[l])
			}
		}
	}
}

func (p *parser) set3(in *inst, u Unit, t typ, f func(x, y, z uint64) uint64) {
	p.arity(in, 4)
	p.writes(in, in.args[0])
	p.reads(in, in.args[1:]...)
	in.unit, in.width = u, t.bits
	d, a, b, c := p.reg(in, in.args[0]), in.args[1], in.args[2], in.args[3]
	in.exec = func(w *warp, m uint32) {
		D, A, B, C := &w.r[d], w.val(&a), w.val(&b), w.val(&c)
		for l := range 32 {
			if m>>l&1 != 0 {
				D[l] = f(A[l], B[l], C[l])
			}
		}
	}
}

// sext gives x, a value of type t, as a signed number.
func sext(x uint64, t typ) int64 { return int64(x<<(64-t.bits)) >> (64 - t.bits) }

// ext widens by the type's sign.
func ext(x uint64, t typ) uint64 {
	if t.signed {
		return uint64(sext(x, t))
	}
	return x & t.mask()
}

func addSub(p *parser, in *inst) {
	t := p.lastType(in)
	if t.float {
		floatAdd(p, in, t)
		return
	}
	k := t.mask()
	if in.has("sat") {
		p.fail("%s: saturation is not known", in.full)
	}
	if in.has("cc") {
		carry(p, in)
		return
	}
	if in.op == "add" {
		p.set2(in, alu, t, func(x, y uint64) uint64 { return (x + y) & k })
	} else {
		p.set2(in, alu, t, func(x, y uint64) uint64 { return (x - y) & k })
	}
}

// carry is the extended-precision arithmetic. The condition code is one bit a lane of the warp.
func carry(p *parser, in *inst) {
	t := p.lastType(in)
	if t.float || t.bits < 32 {
		p.fail("%s is not known", in.full)
	}
	if in.op == "madc" || in.op == "mad" {
		carryMad(p, in, t)
		return
	}
	k, use, set, sub := t.mask(), len(in.op) == 4, in.has("cc"), in.op[:3] == "sub"
	p.arity(in, 3)
	p.writes(in, in.args[0])
	p.reads(in, in.args[1:]...)
	in.unit, in.width = alu, t.bits
	d, a, b := p.reg(in, in.args[0]), in.args[1], in.args[2]
	in.exec = func(w *warp, m uint32) {
		D, A, B := &w.r[d], w.val(&a), w.val(&b)
		all(m, func(l int) {
			x, y, c := A[l]&k, B[l]&k, uint64(0)
			if use {
				c = uint64(w.cc >> l & 1)
			}
			var r, out uint64
			if sub {
				r, out = bits.Sub64(x, y, c)
				if t.bits == 32 {
					out = r >> 63
				}
			} else {
				r, out = bits.Add64(x, y, c)
				if t.bits == 32 {
					out = r >> 32 & 1
				}
			}
			D[l] = r & k
			w.setCC(set, l, out)
		})
	}
}

func carryMad(p *parser, in *inst, t typ) {
	if t.bits != 32 || t.signed || !(in.has("lo") || in.has("hi")) {
		p.fail("%s is not known", in.full)
	}
	use, set, hi := in.op == "madc", in.has("cc"), in.has("hi")
	p.arity(in, 4)
	p.writes(in, in.args[0])
	p.reads(in, in.args[1:]...)
	in.unit, in.width = imad, 32
	d, a, b, c := p.reg(in, in.args[0]), in.args[1], in.args[2], in.args[3]
	in.exec = func(w *warp, m uint32) {
		D, A, B, C := &w.r[d], w.val(&a), w.val(&b), w.val(&c)
		all(m, func(l int) {
			x := (A[l] & 0xFFFFFFFF) * (B[l] & 0xFFFFFFFF)
			if hi {
				x >>= 32
			}
			s := x&0xFFFFFFFF + C[l]&0xFFFFFFFF
			if use {
				s += uint64(w.cc >> l & 1)
			}
			D[l] = s & 0xFFFFFFFF
			w.setCC(set, l, s>>32)
		})
	}
}

func (w *warp) setCC(set bool, l int, v uint64) {
	if set {
		w.cc = w.cc&^(1<<l) | uint32(v&1)<<l
	}
}

func mul(p *parser, in *inst) {
	t := p.lastType(in)
	if t.float {
		floatMul(p, in, t)
		return
	}
	k := t.mask()
	switch {
	case in.has("lo"):
		p.set2(in, imad, t, func(x, y uint64) uint64 { return x * y & k })
	case in.has("wide"):
		w := typ{bits: 2 * t.bits}
		p.set2(in, imad, w, func(x, y uint64) uint64 { return ext(x, t) * ext(y, t) & w.mask() })
	case in.has("hi"):
		p.set2(in, imad, t, func(x, y uint64) uint64 { return mulHi(x, y, t) })
	default:
		p.fail("%s: want .lo, .hi or .wide", in.full)
	}
}

func mulHi(x, y uint64, t typ) uint64 {
	if t.bits < 64 {
		return ext(x, t) * ext(y, t) >> t.bits & t.mask()
	}
	hi, _ := bits.Mul64(x, y)
	if t.signed {
		if int64(x) < 0 {
			hi -= y
		}
		if int64(y) < 0 {
			hi -= x
		}
	}
	return hi
}

func mad(p *parser, in *inst) {
	t := p.lastType(in)
	if t.float {
		fma(p, in)
		return
	}
	if in.has("cc") {
		carry(p, in)
		return
	}
	k := t.mask()
	switch {
	case in.has("lo"):
		p.set3(in, imad, t, func(x, y, z uint64) uint64 { return (x*y + z) & k })
	case in.has("wide"):
		w := typ{bits: 2 * t.bits}
		p.set3(in, imad, w, func(x, y, z uint64) uint64 { return (ext(x, t)*ext(y, t) + z) & w.mask() })
	case in.has("hi"):
		p.set3(in, imad, t, func(x, y, z uint64) uint64 { return (mulHi(x, y, t) + z) & k })
	default:
		p.fail("%s: want .lo, .hi or .wide", in.full)
	}
}

func div(p *parser, in *inst) {
	t := p.lastType(in)
	if t.float {
		floatDiv(p, in, t)
		return
	}
	k := t.mask()
	p.set2(in, imad, t, func(x, y uint64) uint64 {
		if y&k == 0 {
			return k // PTX leaves it open; all ones is what GPUs give
		}
		if t.signed {
			return uint64(sext(x, t)/sext(y, t)) & k
		}
		return (x & k) / (y & k)
	})
}

func rem(p *parser, in *inst) {
	t := p.lastType(in)
	k := t.mask()
	p.set2(in, imad, t, func(x, y uint64) uint64 {
		if y&k == 0 {
			return x & k
		}
		if t.signed {
			return uint64(sext(x, t)%sext(y, t)) & k
		}
		return (x & k) % (y & k)
	})
}

func neg(p *parser, in *inst) {
	t := p.lastType(in)
	if t.float {
		signOp(p, in, t, func(x, s uint64) uint64 { return x ^ s })
		return
	}
	k := t.mask()
	p.set1(in, alu, t, func(x uint64) uint64 { return -x & k })
}

func absOp(p *parser, in *inst) {
	t := p.lastType(in)
	if t.float {
		signOp(p, in, t, func(x, s uint64) uint64 { return x &^ s })
		return
	}
	k := t.mask()
	p.set1(in, alu, t, func(x uint64) uint64 {
		if sext(x, t) < 0 {
			return -x & k
		}
		return x & k
	})
}

func minMax(p *parser, in *inst) {
	t := p.lastType(in)
	if t.float {
		floatMinMax(p, in, t)
		return
	}
	k, isMin := t.mask(), in.op == "min"
	p.set2(in, alu, t, func(x, y uint64) uint64 {
		x, y = x&k, y&k
		less := x < y
		if t.signed {
			less = sext(x, t) < sext(y, t)
		}
		if less == isMin {
			return x
		}
		return y
	})
}

func dp4a(p *parser, in *inst) {
	if len(in.mods) != 2 {
		p.fail("%s is not known", in.full)
	}
	sa, sb := in.mods[0] == "s32", in.mods[1] == "s32"
	p.set3(in, imad, types["b32"], func(a, b, c uint64) uint64 {
		s := int64(c)
		for i := range 4 {
			x, y := int64(uint8(a>>(8*i))), int64(uint8(b>>(8*i)))
			if sa {
				x = int64(int8(x))
			}
			if sb {
				y = int64(int8(y))
			}
			s += x * y
		}
		return uint64(s) & 0xFFFFFFFF
	})
}

func sad(p *parser, in *inst) {
	t := p.lastType(in)
	p.set3(in, alu, t, func(a, b, c uint64) uint64 {
		x, y := a&t.mask(), b&t.mask()
		less := x < y
		if t.signed {
			less = sext(x, t) < sext(y, t)
		}
		if less {
			x, y = y, x
		}
		return (x - y + c) & t.mask()
	})
}

// vabsdiff4 is the sum of the differences of four bytes, added to c.
func vabsdiff4(p *parser, in *inst) {
	if in.full != "vabsdiff4.u32.u32.u32.add" {
		p.fail("%s is not known", in.full)
	}
	p.set3(in, alu, types["b32"], func(a, b, c uint64) uint64 {
		for k := 0; k < 32; k += 8 {
			x, y := a>>k&0xFF, b>>k&0xFF
			c += max(x, y) - min(x, y)
		}
		return c & 0xFFFFFFFF
	})
}
