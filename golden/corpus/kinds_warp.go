package corpus

import (
	"fmt"
	"strings"
)

func collectives(add adder) {
	for _, mode := range []string{"idx", "bfly", "up", "down"} {
		add(70, 2, "shfl.sync."+mode+".b32", func(e *emitter, o op) {
			a := e.bits(o.arg[0])
			e.joined()
			by, clamp := fmt.Sprint(1+o.imm%31), 31
			if mode == "idx" {
				by = e.bits(o.arg[1]) // the lane that each names itself, modulo 32
			}
			if mode == "up" {
				clamp = 0
			}
			d, p := e.word(), e.truth()
			e.ins("shfl.sync.%s.b32 %s|%s, %s, %s, %d, 0xffffffff", mode, d, p, a, by, clamp)
			e.keep(value{reg: d})
			e.pred = append(e.pred, p)
		})
	}
	add(70, 2, "vote.sync.ballot.b32", func(e *emitter, o op) {
		q := e.truthOf(o.arg[0])
		e.joined()
		d := e.word()
		e.ins("vote.sync.ballot.b32 %s, %s, 0xffffffff", d, q)
		e.keep(value{reg: d})
	})
	for _, mode := range []string{"any", "all"} {
		add(70, 1, "vote.sync."+mode+".pred", func(e *emitter, o op) {
			q := e.truthOf(o.arg[0])
			e.joined()
			p := e.truth()
			e.ins("vote.sync.%s.pred %s, %s, 0xffffffff", mode, p, q)
			e.pred = append(e.pred, p)
		})
	}
	add(70, 2, "match.any.sync.b32", func(e *emitter, o op) {
		a, few := e.bits(o.arg[0]), e.word()
		e.ins("and.b32 %s, %s, 3", few, a)
		e.joined()
		d := e.word()
		e.ins("match.any.sync.b32 %s, %s, 0xffffffff", d, few)
		e.keep(value{reg: d})
	})
	for _, mode := range []string{"add.u32", "min.s32", "max.u32", "xor.b32", "or.b32"} {
		add(80, 1, "redux.sync."+mode, func(e *emitter, o op) {
			a := e.bits(o.arg[0])
			e.joined()
			d := e.word()
			e.ins("redux.sync.%s %s, %s, 0xffffffff", mode, d, a)
			e.keep(value{reg: d})
		})
	}
}

// other computes where another thread's 16 bytes of shared memory begin.
func (e *emitter) other(by uint32) string {
	sum, a := e.word(), e.reg("r")
	e.ins("add.u32 %s, %%t, %d", sum, 1+by%127)
	e.ins("and.b32 %s, %s, %%last", a, sum) // the number of threads is a power of two
	e.ins("shl.b32 %s, %s, 4", a, a)
	e.ins("add.u32 %s, %s, %%shared", a, a)
	return a
}

func (e *emitter) meet() { e.ins("bar.sync 0"); e.apart = false }

func memories(add adder) {
	// One thread writes, another reads, in one width or another, between two barriers.
	for _, m := range []struct {
		name     string
		in, out  int // words written and read
		st, ld   string
		wide, at int
	}{
		{"u32", 1, 1, "st.shared.u32", "ld.shared.u32", 0, 0},
		{"v2", 2, 2, "st.shared.v2.u32", "ld.shared.v2.u32", 0, 0},
		{"v4", 4, 4, "st.shared.v4.u32", "ld.shared.v4.u32", 0, 0},
		{"u64", 2, 2, "st.shared.u64", "ld.shared.u64", 1, 0},
		{"u16", 1, 1, "st.shared.u32", "ld.shared.u16", 0, 2},
		{"s8", 1, 1, "st.shared.u32", "ld.shared.s8", 0, 3},
	} {
		add(70, 2, "shared "+m.name, func(e *emitter, o op) {
			from := e.other(o.imm)
			if m.wide > 0 {
				v := e.bits64(o.arg[0])
				e.ins("%s [%%own], %s", m.st, v)
				e.meet()
				d := e.wide()
				e.ins("%s %s, [%s]", m.ld, d, from)
				e.meet()
				e.keep(value{reg: d})
				return
			}
			var vs, ds []string
			for i := range m.in {
				vs = append(vs, e.bits(o.arg[i]))
			}
			for range m.out {
				d := e.word()
				ds = append(ds, d)
			}
			e.ins("%s [%%own], %s", m.st, list(vs))
			e.meet()
			e.ins("%s %s, [%s+%d]", m.ld, list(ds), from, m.at)
			e.meet()
			for _, d := range ds {
				e.keep(value{reg: d})
			}
		})
	}
	// Atomics on the thread's own word, whose results are used.
	for _, f := range []string{"add.u32", "xor.b32", "max.s32", "min.u32", "exch.b32", "cas.b32"} {
		add(70, 1, "atom.shared."+f, func(e *emitter, o op) {
			v, w, old, now := e.bits(o.arg[0]), e.bits(o.arg[1]), e.word(), e.word()
			e.ins("st.shared.u32 [%%own], %s", v)
			if f == "cas.b32" {
				e.ins("atom.shared.cas.b32 %s, [%%own], %s, %s", old, v, w)
			} else {
				e.ins("atom.shared.%s %s, [%%own], %s", f, old, w)
			}
			e.ins("ld.shared.u32 %s, [%%own]", now)
			e.keep(value{reg: old})
			e.keep(value{reg: now})
		})
	}
	// A commutative one on another thread's word, without a result.
	for _, f := range []string{"add.u32", "xor.b32", "max.u32"} {
		add(70, 1, "red.shared."+f, func(e *emitter, o op) {
			v, w, to, now := e.bits(o.arg[0]), e.bits(o.arg[1]), e.other(o.imm), e.word()
			e.ins("st.shared.u32 [%%own], %s", v)
			e.meet()
			e.ins("red.shared.%s [%s], %s", f, to, w)
			e.meet()
			e.ins("ld.shared.u32 %s, [%%own]", now)
			e.keep(value{reg: now})
		})
	}
	// The thread's own word of global memory, keyed by its slot, so that no SM holds what another does.
	for _, how := range []string{"ca", "cg"} {
		add(70, 2, "global "+how, func(e *emitter, o op) {
			v, k, got, d := e.bits(o.arg[0]), e.reg("r"), e.reg("r"), e.word()
			e.ins("xor.b32 %s, %s, %%key", k, v)
			e.ins("st.global.u32 [%%scratch], %s", k)
			e.ins("ld.global.%s.u32 %s, [%%scratch]", how, got)
			e.ins("xor.b32 %s, %s, %%key", d, got)
			e.keep(value{reg: d})
		})
	}
	for _, f := range []string{"add.u32", "exch.b32"} {
		add(70, 1, "atom.global."+f, func(e *emitter, o op) {
			v, w, k, was, is, old, now := e.bits(o.arg[0]), e.bits(o.arg[1]), e.reg("r"), e.reg("r"), e.reg("r"), e.word(), e.word()
			e.ins("add.u32 %s, %s, %%key", k, v)
			e.ins("st.global.u32 [%%scratch], %s", k)
			e.ins("atom.global.%s %s, [%%scratch], %s", f, was, w)
			e.ins("ld.global.cg.u32 %s, [%%scratch]", is)
			e.ins("sub.u32 %s, %s, %%key", old, was)
			if f == "add.u32" {
				e.ins("sub.u32 %s, %s, %%key", now, is)
			} else {
				e.ins("mov.b32 %s, %s", now, is) // the word that was put there has no key
			}
			e.keep(value{reg: old})
			e.keep(value{reg: now})
		})
	}
}

func list(regs []string) string {
	if len(regs) == 1 {
		return regs[0]
	}
	return "{" + strings.Join(regs, ", ") + "}"
}

func tensors(add adder) {
	add(80, 4, "mma s8", func(e *emitter, o op) {
		a, b := []string{e.bits(o.arg[0]), e.bits(o.arg[1]), e.bits(o.arg[2]), e.bits(o.arg[3])}, []string{e.bits(o.arg[0] >> 8), e.bits(o.arg[1] >> 8)}
		c := []string{e.bits(o.arg[2] >> 8), e.bits(o.arg[3] >> 8), e.bits(o.imm), e.bits(o.imm >> 8)}
		e.joined()
		d := []string{e.word(), e.word(), e.word(), e.word()}
		e.ins("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 %s, %s, %s, %s", list(d), list(a), list(b), list(c))
		for _, r := range d {
			e.keep(value{reg: r})
		}
	})
	// Whole numbers from -16 to 15, and C from 2^13 on: every sum is exact in every accumulator, and none is zero, whose sign
	// is no rule's.
	for _, t := range []string{"f16", "bf16"} {
		add(80, 4, "mma "+t, func(e *emitter, o op) {
			set, less := uint32(0x64006400), uint32(0xE410E410) // 1024 + n, less 1040
			if t == "bf16" {
				set, less = 0x43004300, 0xC310C310 // 128 + n, less 144
			}
			minus := e.reg("r")
			e.ins("mov.b32 %s, %#x", minus, less)
			one := ""
			if t == "bf16" {
				one = e.reg("r")
				e.ins("mov.b32 %s, 0x3f803f80", one)
			}
			small := func(sel uint32) string {
				n, d := e.word(), e.word()
				e.ins("lop3.b32 %s, %s, 0x1f001f, %#x, 0xEA", n, e.bits(sel), set)
				if t == "bf16" {
					e.ins("fma.rn.bf16x2 %s, %s, %s, %s", d, n, one, minus)
				} else {
					e.ins("add.rn.f16x2 %s, %s, %s", d, n, minus)
				}
				return d
			}
			a := []string{small(o.arg[0]), small(o.arg[1]), small(o.arg[2]), small(o.arg[3])}
			b := []string{small(o.arg[0] >> 8), small(o.arg[1] >> 8)}
			var c []string
			for i := range 4 {
				n, f := e.word(), e.word()
				e.ins("lop3.b32 %s, %s, 0xfff, 0x2000, 0xEA", n, e.bits(o.imm>>(8*i)))
				e.ins("cvt.rn.f32.u32 %s, %s", f, n)
				c = append(c, f)
			}
			e.joined()
			var d []string
			for range 4 {
				d = append(d, e.result(f32, 15))
			}
			e.ins("mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 %s, %s, %s, %s", t, t, list(d), list(a), list(b), list(c))
		})
	}
}
