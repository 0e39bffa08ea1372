package corpus

// Bounds of magnitudes, as powers of two, that operands may have: no result then leaves the type's range.
var most = map[typ]int{f32: 40, f64: 400, f16x2: 6, bf16x2: 40}

var typeNames = map[typ]string{f32: "f32", f64: "f64", f16x2: "f16x2", bf16x2: "bf16x2"}

func floats(add adder) {
	for _, t := range []typ{f32, f64, f16x2, bf16x2} {
		name, tier, weight := typeNames[t], 70, 5
		if t == bf16x2 {
			tier = 80
		}
		add(tier, weight, "fma.rn."+name, func(e *emitter, o op) {
			a, b, c := e.real(t, o.arg[0], most[t]), e.real(t, o.arg[1], most[t]), e.real(t, o.arg[2], most[t])
			d := e.result(t, max(a.size+b.size, c.size)+1)
			e.ins("fma.rn.%s %s, %s, %s, %s", name, d, a.reg, b.reg, c.reg)
		})
		if t == bf16x2 {
			continue // add and mul want PTX 7.8 and sm_90
		}
		add(tier, weight-2, "add.rn."+name, func(e *emitter, o op) {
			a, b := e.real(t, o.arg[0], most[t]), e.real(t, o.arg[1], most[t])
			d := e.result(t, max(a.size, b.size)+1)
			e.ins("add.rn.%s %s, %s, %s", name, d, a.reg, b.reg)
		})
		add(tier, weight-2, "mul.rn."+name, func(e *emitter, o op) {
			a, b := e.real(t, o.arg[0], most[t]), e.real(t, o.arg[1], most[t])
			d := e.result(t, a.size+b.size)
			e.ins("mul.rn.%s %s, %s, %s", name, d, a.reg, b.reg)
		})
	}
	for _, t := range []typ{f32, f64} {
		name := typeNames[t]
		for _, f := range []string{"min.", "max."} {
			add(70, 1, f+name, func(e *emitter, o op) {
				a, b := e.real(t, o.arg[0], 2*most[t]), e.real(t, o.arg[1], 2*most[t])
				d := e.result(t, max(a.size, b.size))
				e.ins("%s%s %s, %s, %s", f, name, d, a.reg, b.reg)
			})
		}
		least := map[typ]int{f32: 15, f64: 31}[t]
		add(70, 1, "div.rn."+name, func(e *emitter, o op) {
			a, b := e.real(t, o.arg[0], most[t]), e.decode(t, o.arg[1], false)
			d := e.result(t, a.size+least)
			e.apart = true // it is a subroutine on some targets
			e.ins("div.rn.%s %s, %s, %s", name, d, a.reg, b.reg)
		})
		add(70, 1, "rcp.rn."+name, func(e *emitter, o op) {
			b := e.decode(t, o.arg[1], false)
			d := e.result(t, least+1)
			e.apart = true
			e.ins("rcp.rn.%s %s, %s", name, d, b.reg)
		})
		add(70, 1, "sqrt.rn."+name, func(e *emitter, o op) {
			b := e.decode(t, o.arg[1], true)
			d := e.result(t, 1)
			e.apart = true
			e.ins("sqrt.rn.%s %s, %s", name, d, b.reg)
		})
		add(70, 2, "setp.lt."+name, func(e *emitter, o op) {
			a, b, p := e.real(t, o.arg[0], 2*most[t]), e.real(t, o.arg[1], 2*most[t]), e.truth()
			e.ins("setp.lt.%s %s, %s, %s", name, p, a.reg, b.reg)
			e.pred = append(e.pred, p)
		})
	}
}

func conversions(add adder) {
	for _, c := range []struct {
		name string
		t    typ
		size int
	}{{"cvt.rn.f32.u32", f32, 33}, {"cvt.rn.f32.s32", f32, 32}, {"cvt.rn.f64.u32", f64, 32}, {"cvt.rn.f64.s32", f64, 31}} {
		add(70, 2, c.name, func(e *emitter, o op) {
			a, d := e.bits(o.arg[0]), e.result(c.t, c.size)
			e.ins("%s %s, %s", c.name, d, a)
		})
	}
	for _, c := range []struct {
		name string
		t    typ
	}{{"cvt.rzi.s32.f32", f32}, {"cvt.rni.s32.f32", f32}, {"cvt.rmi.s32.f32", f32}, {"cvt.rpi.s32.f32", f32}, {"cvt.rzi.s32.f64", f64}, {"cvt.rni.s32.f64", f64}} {
		add(70, 1, c.name, func(e *emitter, o op) {
			a, d := e.real(c.t, o.arg[0], 30), e.word() // below 2^30: within range
			e.ins("%s %s, %s", c.name, d, a.reg)
			e.keep(value{reg: d})
		})
	}
	add(70, 2, "cvt.f64.f32", func(e *emitter, o op) {
		a := e.real(f32, o.arg[0], most[f32])
		e.ins("cvt.f64.f32 %s, %s", e.result(f64, a.size), a.reg)
	})
	add(70, 2, "cvt.rn.f32.f64", func(e *emitter, o op) {
		a := e.real(f64, o.arg[0], most[f32])
		e.ins("cvt.rn.f32.f64 %s, %s", e.result(f32, a.size+1), a.reg)
	})
	add(70, 2, "cvt.rn.f16.f32", func(e *emitter, o op) {
		a, h, back := e.real(f32, o.arg[0], 14), e.reg("h"), e.reg("h")
		d := e.word()
		e.ins("cvt.rn.f16.f32 %s, %s", h, a.reg)
		e.ins("mov.b16 %s, %s", back, h)
		e.ins("mov.b32 %s, {%s, %s}", d, h, back)
		e.keep(value{reg: d})
		e.ins("cvt.f32.f16 %s, %s", e.result(f32, a.size+1), h)
	})
}
