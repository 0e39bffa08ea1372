package ptxvm

import "math/bits"

func logic(p *parser, in *inst) {
	t := p.lastType(in)
	switch in.op {
	case "and":
		p.set2(in, lop3, t, func(x, y uint64) uint64 { return x & y })
	case "or":
		p.set2(in, lop3, t, func(x, y uint64) uint64 { return x | y })
	default:
		p.set2(in, lop3, t, func(x, y uint64) uint64 { return x ^ y })
	}
	if t.bits == 1 {
		in.unit = predicate
	}
}

func not(p *parser, in *inst) {
	t := p.lastType(in)
	k := t.mask()
	if in.op == "cnot" {
		p.set1(in, lop3, t, func(x uint64) uint64 {
			if x == 0 {
				return 1
			}
			return 0
		})
		return
	}
	p.set1(in, lop3, t, func(x uint64) uint64 { return ^x & k })
}

func lop3Op(p *parser, in *inst) {
	p.arity(in, 5)
	table := in.args[4]
	if table.kind != argImm || table.off < 0 || table.off > 255 {
		p.fail("lop3's table: want a constant from 0 to 255")
	}
	lut := uint64(table.off)
	in.table = uint8(lut)
	in.args = in.args[:4]
	p.set3(in, lop3, types["b32"], func(x, y, z uint64) uint64 {
		var r uint64
		for i := range uint64(8) {
			if lut>>i&1 == 0 {
				continue
			}
			a, b, c := x, y, z
			if i&4 == 0 {
				a = ^a
			}
			if i&2 == 0 {
				b = ^b
			}
			if i&1 == 0 {
				c = ^c
			}
			r |= a & b & c
		}
		return r & 0xFFFFFFFF
	})
}

func shl(p *parser, in *inst) {
	t := p.lastType(in)
	k, n := t.mask(), uint64(t.bits)
	p.set2(in, shift, t, func(x, y uint64) uint64 {
		if y &= 0xFFFFFFFF; y >= n {
			return 0
		}
		return x << y & k
	})
}

func shr(p *parser, in *inst) {
	t := p.lastType(in)
	k, n := t.mask(), uint64(t.bits)
	p.set2(in, shift, t, func(x, y uint64) uint64 {
		y &= 0xFFFFFFFF
		if t.signed {
			return uint64(sext(x, t)>>min(y, n-1)) & k
		}
		if y >= n {
			return 0
		}
		return x & k >> y
	})
}

func shf(p *parser, in *inst) {
	left, wrap := in.has("l"), in.has("wrap")
	if !left && !in.has("r") || !wrap && !in.has("clamp") {
		p.fail("%s is not known", in.full)
	}
	p.set3(in, shift, types["b32"], func(a, b, c uint64) uint64 {
		n := c & 0xFFFFFFFF
		if wrap {
			n &= 31
		} else {
			n = min(n, 32)
		}
		v := b<<32 | a&0xFFFFFFFF
		if left {
			return v << n >> 32
		}
		return v >> n & 0xFFFFFFFF
	})
}

func prmt(p *parser, in *inst) {
	if len(in.mods) != 1 {
		p.fail("%s is not known", in.full)
	}
	p.set3(in, alu, types["b32"], func(a, b, c uint64) uint64 {
		v := b<<32 | a&0xFFFFFFFF
		var r uint64
		for i := range 4 {
			s := c >> (4 * i) & 15
			x := v >> (8 * (s & 7)) & 0xFF
			if s&8 != 0 {
				x = uint64(int64(int8(x))>>7) & 0xFF
			}
			r |= x << (8 * i)
		}
		return r
	})
}

func unary(p *parser, in *inst) {
	t := p.lastType(in)
	if t.bits < 32 {
		p.fail("%s is not known", in.full)
	}
	wide := t.bits == 64
	d := types["u32"]
	switch in.op {
	case "brev":
		p.set1(in, alu, t, func(x uint64) uint64 { return bits.Reverse64(x) >> (64 - t.bits) })
	case "popc":
		p.set1(in, alu, d, func(x uint64) uint64 { return uint64(bits.OnesCount64(x & t.mask())) })
	case "clz":
		p.set1(in, alu, d, func(x uint64) uint64 {
			if wide {
				return uint64(bits.LeadingZeros64(x))
			}
			return uint64(bits.LeadingZeros32(uint32(x)))
		})
	default:
		p.set1(in, alu, d, func(x uint64) uint64 {
			x &= t.mask()
			if t.signed && sext(x, t) < 0 {
				x = ^x & t.mask()
			}
			return uint64(bits.Len64(x)-1) & 0xFFFFFFFF
		})
	}
}

func bfe(p *parser, in *inst) {
	t := p.lastType(in)
	p.set3(in, shift, t, func(a, b, c uint64) uint64 {
		pos, n := b&0xFF, c&0xFF
		if n == 0 {
			return 0
		}
		last := min(pos+n-1, uint64(t.bits)-1)
		var v uint64
		if pos < uint64(t.bits) {
			v = a & t.mask() >> pos
		}
		if n < 64 {
			v &= 1<<n - 1
		}
		if t.signed && a>>last&1 != 0 {
			if pos >= uint64(t.bits) {
				return t.mask()
			}
			v |= ^uint64(0) << (last - pos)
		}
		return v & t.mask()
	})
}

func bfi(p *parser, in *inst) {
	t := p.lastType(in)
	p.arity(in, 5)
	p.writes(in, in.args[0])
	p.reads(in, in.args[1:]...)
	in.unit, in.width = shift, t.bits
	d, a, b, c, e := p.reg(in, in.args[0]), in.args[1], in.args[2], in.args[3], in.args[4]
	in.exec = func(w *warp, m uint32) {
		D, A, B, C, E := &w.r[d], w.val(&a), w.val(&b), w.val(&c), w.val(&e)
		all(m, func(l int) {
			pos, n := C[l]&0xFF, E[l]&0xFF
			k := ^uint64(0)
			if n < 64 {
				k = 1<<n - 1
			}
			if pos > 63 {
				k = 0
			}
			D[l] = (B[l]&^(k<<pos) | A[l]&k<<pos) & t.mask()
		})
	}
}
