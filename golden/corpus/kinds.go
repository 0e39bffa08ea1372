package corpus

import "fmt"

// A kind is one production of the grammar.
type kind struct {
	name   string
	tier   int // lowest compute capability
	weight int
	emit   func(e *emitter, o op)
}

// kinds is the grammar. The order is part of what a seed means.
var kinds = func() []kind {
	var ks []kind
	add := func(tier, weight int, name string, emit func(e *emitter, o op)) {
		ks = append(ks, kind{name, tier, weight, emit})
	}
	integers(add)
	doubles(add)
	predicates(add)
	floats(add)
	conversions(add)
	collectives(add)
	memories(add)
	tensors(add)
	return ks
}()

type adder func(tier, weight int, name string, emit func(e *emitter, o op))

// plain is an instruction of n words.
func plain(add adder, weight, n int, names ...string) {
	for _, name := range names {
		add(70, weight, name, func(e *emitter, o op) {
			args := ""
			for i := range n {
				args += ", " + e.bits(o.arg[i])
			}
			d := e.word()
			e.ins("%s %s%s", name, d, args)
			e.keep(value{reg: d})
		})
	}
}

func integers(add adder) {
	plain(add, 3, 2, "add.u32", "sub.u32", "mul.lo.u32", "mul.hi.u32", "mul.hi.s32", "xor.b32", "and.b32", "or.b32", "min.s32", "max.u32", "min.u32", "max.s32")
	plain(add, 3, 3, "mad.lo.u32", "mad.hi.u32", "mad.hi.s32", "prmt.b32", "sad.u32", "sad.s32", "shf.l.wrap.b32", "shf.r.wrap.b32", "shf.r.clamp.b32", "dp4a.u32.u32", "dp4a.s32.s32", "dp4a.u32.s32")
	plain(add, 2, 1, "not.b32", "neg.s32", "brev.b32", "popc.b32", "clz.b32", "bfind.u32", "bfind.s32")
	for _, name := range []string{"shl.b32", "shr.u32", "shr.s32"} {
		add(70, 2, name, func(e *emitter, o op) {
			a, d := e.bits(o.arg[0]), e.word()
			e.ins("%s %s, %s, %d", name, d, a, 1+o.imm%31)
			e.keep(value{reg: d})
		})
	}
	for _, name := range []string{"bfe.u32", "bfe.s32"} {
		add(70, 2, name, func(e *emitter, o op) {
			a, d := e.bits(o.arg[0]), e.word()
			e.ins("%s %s, %s, %d, %d", name, d, a, o.imm%24, 1+o.imm>>8%24)
			e.keep(value{reg: d})
		})
	}
	add(70, 2, "bfi.b32", func(e *emitter, o op) {
		a, b, d := e.bits(o.arg[0]), e.bits(o.arg[1]), e.word()
		e.ins("bfi.b32 %s, %s, %s, %d, %d", d, a, b, o.imm%24, 1+o.imm>>8%24)
		e.keep(value{reg: d})
	})
	add(70, 6, "lop3.b32", func(e *emitter, o op) {
		a, b, c, d := e.bits(o.arg[0]), e.bits(o.arg[1]), e.bits(o.arg[2]), e.word()
		e.ins("lop3.b32 %s, %s, %s, %s, %#x", d, a, b, c, 1+o.imm%254)
		e.keep(value{reg: d})
	})
	for _, name := range []string{"add.u32", "mul.lo.u32", "xor.b32"} { // with a constant
		add(70, 2, name+" const", func(e *emitter, o op) {
			a, d := e.bits(o.arg[0]), e.word()
			e.ins("%s %s, %s, %#x", name, d, a, o.imm|1)
			e.keep(value{reg: d})
		})
	}
	for _, c := range []struct{ first, then string }{{"add.cc.u32", "addc.u32"}, {"sub.cc.u32", "subc.u32"}} {
		add(70, 3, c.first, func(e *emitter, o op) {
			a, b, x, y := e.bits(o.arg[0]), e.bits(o.arg[1]), e.bits(o.arg[2]), e.bits(o.arg[3])
			lo, hi := e.word(), e.word()
			e.ins("%s %s, %s, %s", c.first, lo, a, b)
			e.ins("%s %s, %s, %s", c.then, hi, x, y)
			e.keep(value{reg: lo})
			e.keep(value{reg: hi})
		})
	}
	for _, name := range []string{"div.u32", "rem.u32"} {
		add(70, 1, name, func(e *emitter, o op) {
			a, b, one, d := e.bits(o.arg[0]), e.bits(o.arg[1]), e.word(), e.word()
			e.ins("or.b32 %s, %s, %#x", one, b, 1<<(o.imm%20)) // no division by zero
			e.ins("%s %s, %s, %s", name, d, a, one)
			e.apart = true // it is a subroutine on some targets
			e.keep(value{reg: d})
		})
	}
}

func doubles(add adder) {
	for _, name := range []string{"mul.wide.u32", "mul.wide.s32"} {
		add(70, 3, name, func(e *emitter, o op) {
			a, b, d := e.bits(o.arg[0]), e.bits(o.arg[1]), e.wide()
			e.ins("%s %s, %s, %s", name, d, a, b)
			e.keep(value{reg: d})
		})
	}
	for _, name := range []string{"mad.wide.u32", "mad.wide.s32"} {
		add(70, 3, name, func(e *emitter, o op) {
			a, b, c, d := e.bits(o.arg[0]), e.bits(o.arg[1]), e.bits64(o.arg[2]), e.wide()
			e.ins("%s %s, %s, %s, %s", name, d, a, b, c)
			e.keep(value{reg: d})
		})
	}
	for _, name := range []string{"add.u64", "sub.u64", "mul.lo.u64", "mul.hi.u64", "xor.b64", "and.b64", "min.u64", "max.s64"} {
		add(70, 2, name, func(e *emitter, o op) {
			a, b, d := e.bits64(o.arg[0]), e.bits64(o.arg[1]), e.wide()
			e.ins("%s %s, %s, %s", name, d, a, b)
			e.keep(value{reg: d})
		})
	}
	for _, name := range []string{"shl.b64", "shr.u64", "shr.s64"} {
		add(70, 1, name, func(e *emitter, o op) {
			a, d := e.bits64(o.arg[0]), e.wide()
			e.ins("%s %s, %s, %d", name, d, a, 1+o.imm%63)
			e.keep(value{reg: d})
		})
	}
	for _, name := range []string{"popc.b64", "clz.b64"} {
		add(70, 1, name, func(e *emitter, o op) {
			a, d := e.bits64(o.arg[0]), e.word()
			e.ins("%s %s, %s", name, d, a)
			e.keep(value{reg: d})
		})
	}
}

func predicates(add adder) {
	for _, name := range []string{"setp.eq.u32", "setp.lt.u32", "setp.ge.s32", "setp.gt.s32"} {
		add(70, 2, name, func(e *emitter, o op) {
			a, b, p := e.bits(o.arg[0]), e.bits(o.arg[1]), e.truth()
			e.ins("%s %s, %s, %s", name, p, a, b)
			e.pred = append(e.pred, p)
		})
	}
	add(70, 2, "setp.lt.u64", func(e *emitter, o op) {
		a, b, p := e.bits64(o.arg[0]), e.bits64(o.arg[1]), e.truth()
		e.ins("setp.lt.u64 %s, %s, %s", p, a, b)
		e.pred = append(e.pred, p)
	})
	add(70, 2, "setp.ne.and.u32", func(e *emitter, o op) {
		q := e.truthOf(o.arg[2])
		a, b, p := e.bits(o.arg[0]), e.bits(o.arg[1]), e.truth()
		e.ins("setp.ne.and.u32 %s, %s, %s, %s", p, a, b, q)
		e.pred = append(e.pred, p)
	})
	add(70, 4, "selp.b32", func(e *emitter, o op) {
		q := e.truthOf(o.arg[2])
		a, b, d := e.bits(o.arg[0]), e.bits(o.arg[1]), e.word()
		e.ins("selp.b32 %s, %s, %s, %s", d, a, b, q)
		e.keep(value{reg: d})
	})
	// Lanes part by a predicate of their own and meet again.
	add(70, 3, "bra", func(e *emitter, o op) {
		q := e.truthOf(o.arg[2])
		a, b, d := e.bits(o.arg[0]), e.bits(o.arg[1]), e.word()
		there, end := fmt.Sprintf("$%s_%d", e.id, e.label), fmt.Sprintf("$%s_%d", e.id, e.label+1)
		e.label += 2
		e.ins("@%s bra %s", q, there)
		e.ins("mad.lo.u32 %s, %s, %s, %#x", d, a, b, o.imm)
		e.ins("bra %s", end)
		fmt.Fprintf(&e.b, "%s:\n", there)
		e.ins("shf.l.wrap.b32 %s, %s, %s, %d", d, a, b, o.imm%32)
		fmt.Fprintf(&e.b, "%s:\n", end)
		e.ins("bar.warp.sync 0xffffffff")
		e.apart = false
		e.keep(value{reg: d})
	})
	// An instruction under a guard.
	add(70, 3, "@p", func(e *emitter, o op) {
		q := e.truthOf(o.arg[2])
		a, b, d := e.bits(o.arg[0]), e.bits(o.arg[1]), e.word()
		e.ins("mov.b32 %s, %s", d, a)
		e.ins("@%s xor.b32 %s, %s, %s", q, d, a, b)
		e.keep(value{reg: d})
	})
}
