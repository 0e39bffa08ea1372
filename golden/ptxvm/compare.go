package ptxvm

func setp(p *parser, in *inst) {
	t := p.lastType(in)
	if in.op == "set" || len(in.mods) < 2 {
		p.fail("%s is not known", in.full)
	}
	cmp := comparison(p, in.mods[0], t)
	p.arity(in, 3, 4)
	p.writes(in, in.args[0])
	p.reads(in, in.args[1:]...)
	in.unit, in.width = predicate, 1
	d, both := in.args[0], -1
	if d.kind == argList {
		if len(d.list) != 2 {
			p.fail("%s: want one or two predicates", in.full)
		}
		if d.list[1].kind == argReg {
			both = d.list[1].reg
		}
		d = d.list[0]
	}
	dr := p.reg(in, d)
	a, b := in.args[1], in.args[2]
	join := func(x, _ uint64) uint64 { return x }
	var c arg
	if len(in.args) == 4 {
		c = in.args[3]
		switch in.mods[1] {
		case "and":
			join = func(x, y uint64) uint64 { return x & y }
		case "or":
			join = func(x, y uint64) uint64 { return x | y }
		case "xor":
			join = func(x, y uint64) uint64 { return x ^ y }
		default:
			p.fail("%s is not known", in.full)
		}
	} else {
		c = immediate(0)
	}
	in.exec = func(w *warp, m uint32) {
		A, B, C := w.val(&a), w.val(&b), w.val(&c)
		all(m, func(l int) {
			v, y := uint64(0), C[l]
			if cmp(A[l], B[l]) {
				v = 1
			}
			if c.neg {
				y ^= 1
			}
			if both >= 0 {
				w.r[both][l] = join(v^1, y)
			}
			w.r[dr][l] = join(v, y)
		})
	}
}

func comparison(p *parser, name string, t typ) func(x, y uint64) bool {
	if t.float {
		return floatComparison(p, name, t)
	}
	k := t.mask()
	less := func(x, y uint64) bool { return x&k < y&k }
	if t.signed {
		less = func(x, y uint64) bool { return sext(x, t) < sext(y, t) }
	}
	switch name {
	case "eq":
		return func(x, y uint64) bool { return x&k == y&k }
	case "ne":
		return func(x, y uint64) bool { return x&k != y&k }
	case "lt", "lo":
		return less
	case "gt", "hi":
		return func(x, y uint64) bool { return less(y, x) }
	case "le", "ls":
		return func(x, y uint64) bool { return !less(y, x) }
	case "ge", "hs":
		return func(x, y uint64) bool { return !less(x, y) }
	}
	p.fail("comparison %q is not known", name)
	return nil
}

func selp(p *parser, in *inst) {
	t := p.lastType(in)
	if in.op == "slct" {
		p.fail("slct is not known")
	}
	neg := len(in.args) == 4 && in.args[3].neg
	p.set3(in, alu, t, func(x, y, c uint64) uint64 {
		if (c != 0) != neg {
			return x & t.mask()
		}
		return y & t.mask()
	})
}
