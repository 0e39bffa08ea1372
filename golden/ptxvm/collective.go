package ptxvm

import "math/bits"

func bra(p *parser, in *inst) {
	p.arity(in, 1)
	if in.args[0].kind != argName {
		p.fail("%s: want a label", in.full)
	}
	in.targets, in.kind, in.unit = []string{in.args[0].name}, kindBranch, branch
}

func ret(p *parser, in *inst) {
	p.arity(in, 0)
	in.kind = kindRet
}

func trapOp(p *parser, in *inst) {
	p.arity(in, 0)
	in.exec = func(w *warp, _ uint32) { w.trap("illegal_instruction", "the kernel says trap") }
}

func nanosleep(p *parser, in *inst) {
	p.arity(in, 1)
	p.reads(in, in.args[0])
	in.kind = kindYield
	in.exec = func(*warp, uint32) {}
}

// bar is a barrier of the block, of all its threads, or of a warp.
func bar(p *parser, in *inst) {
	p.arity(in, 1)
	in.unit = barrier
	switch {
	case in.has("warp"):
		p.joined(in, in.args[0])
		in.exec = func(w *warp, m uint32) {
			w.drain()
			w.joinLanes(m)
		}
	case in.has("sync") && in.args[0].kind == argImm && in.args[0].off >= 0 && in.args[0].off < 16:
		in.kind = kindBar
	default:
		p.fail("%s is not known", in.full)
	}
}

// joined makes an instruction one that waits for the lanes of a mask operand.
func (p *parser) joined(in *inst, mask arg) {
	p.reads(in, mask)
	in.kind = kindCollect
	in.members = func(w *warp, l int) uint32 { return uint32(w.val(&mask)[l]) }
}

func shfl(p *parser, in *inst) {
	if len(in.mods) != 3 || in.mods[0] != "sync" || in.mods[2] != "b32" {
		p.fail("%s is not known", in.full)
	}
	p.arity(in, 5)
	d, ok := in.args[0], -1
	if d.kind == argList {
		if len(d.list) != 2 {
			p.fail("%s: want one or two results", in.full)
		}
		ok, d = d.list[1].reg, d.list[0]
	}
	mode := in.mods[1]
	p.writes(in, in.args[0])
	p.reads(in, in.args[1:4]...)
	p.joined(in, in.args[4])
	in.unit, in.width = shuffle, 32
	a, b, c := in.args[1], in.args[2], in.args[3]
	dr := p.reg(in, d)
	in.exec = func(w *warp, m uint32) {
		var out lane
		var in32 uint32
		A, B, C := w.val(&a), w.val(&b), w.val(&c)
		all(m, func(l int) {
			bv, cv := int(B[l]&31), C[l]
			seg, clamp := int(cv>>8&31), int(cv&31)
			first := l & seg
			last := first | clamp&^seg
			j, valid := l, true
			switch mode {
			case "up":
				j = l - bv
				valid = j >= last
			case "down":
				j = l + bv
				valid = j <= last
			case "bfly":
				j = l ^ bv
				valid = j <= last
			case "idx":
				j = first | bv&^seg
				valid = j <= last
			default:
				w.trap("illegal_instruction", "%s", mode)
			}
			if !valid {
				j = l
			} else {
				in32 |= 1 << l
			}
			if m>>j&1 == 0 {
				w.at = l
				w.trap("divergence", "a shuffle reads lane %d, which is not among %08x", j, m)
			}
			out[l] = A[j]
		})
		// The lane read decides whether the value is one.
		if a.kind == argReg {
			if bad := w.undefBefore(a.reg); bad != 0 {
				w.undef[dr] |= m
			}
		}
		all(m, func(l int) { w.r[dr][l] = out[l] & 0xFFFFFFFF })
		if ok >= 0 {
			all(m, func(l int) { w.r[ok][l] = uint64(in32 >> l & 1) })
		}
	}
}

// undefBefore gives the lanes in which a source register was never written, as far as that is still known.
func (w *warp) undefBefore(r int) uint32 {
	for _, d := range w.in.dst {
		if d == r {
			return 0 // overwritten by this instruction; step has already carried it over, lane by lane
		}
	}
	return w.undef[r]
}

func vote(p *parser, in *inst) {
	if len(in.mods) != 3 || in.mods[0] != "sync" {
		p.fail("%s is not known", in.full)
	}
	p.arity(in, 3)
	p.writes(in, in.args[0])
	p.reads(in, in.args[1])
	p.joined(in, in.args[2])
	d, a, mode := p.reg(in, in.args[0]), in.args[1], in.mods[1]
	in.unit, in.width = predicate, 32
	if mode != "ballot" {
		in.width = 1
	}
	in.exec = func(w *warp, m uint32) {
		var set uint32
		v := w.val(&a)
		all(m, func(l int) {
			if (v[l]&1 != 0) != a.neg {
				set |= 1 << l
			}
		})
		r := uint64(set)
		truth := map[string]bool{"all": set == m, "any": set != 0, "uni": set == 0 || set == m}
		if mode != "ballot" {
			if r = 0; truth[mode] {
				r = 1
			}
		}
		all(m, func(l int) { w.r[d][l] = r })
	}
}

func match(p *parser, in *inst) {
	if len(in.mods) != 3 || in.mods[0] != "any" || in.mods[1] != "sync" {
		p.fail("%s is not known", in.full)
	}
	p.arity(in, 3)
	p.writes(in, in.args[0])
	p.reads(in, in.args[1])
	p.joined(in, in.args[2])
	d, a := p.reg(in, in.args[0]), in.args[1]
	in.unit, in.width = shuffle, 32
	in.exec = func(w *warp, m uint32) {
		v := *w.val(&a)
		all(m, func(l int) {
			var r uint64
			all(m, func(j int) {
				if v[j] == v[l] {
					r |= 1 << j
				}
			})
			w.r[d][l] = r
		})
	}
}

func redux(p *parser, in *inst) {
	t := p.lastType(in)
	if len(in.mods) != 3 || in.mods[0] != "sync" || t.bits != 32 {
		p.fail("%s is not known", in.full)
	}
	p.arity(in, 3)
	p.writes(in, in.args[0])
	p.reads(in, in.args[1])
	p.joined(in, in.args[2])
	d, a, op := p.reg(in, in.args[0]), in.args[1], in.mods[1]
	in.unit, in.width = alu, 32
	in.exec = func(w *warp, m uint32) {
		v := w.val(&a)
		r := v[bits.TrailingZeros32(m)]
		all(m&(m-1), func(l int) { r = atomic(op, t, r, v[l], 0) & 0xFFFFFFFF })
		all(m, func(l int) { w.r[d][l] = r })
	}
}

func activemask(p *parser, in *inst) {
	p.arity(in, 1)
	p.writes(in, in.args[0])
	d := p.reg(in, in.args[0])
	in.unit, in.width = alu, 32
	in.exec = func(w *warp, m uint32) { all(m, func(l int) { w.r[d][l] = uint64(m) }) }
}
