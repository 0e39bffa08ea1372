package ptxvm

// special gives a special register's value in a lane.
var specials = map[string]func(w *warp, l int) uint64{
	"%tid.x":    func(w *warp, l int) uint64 { return uint64(w.first + l) },
	"%tid.y":    func(*warp, int) uint64 { return 0 },
	"%tid.z":    func(*warp, int) uint64 { return 0 },
	"%ntid.x":   func(w *warp, _ int) uint64 { return uint64(w.b.threads) },
	"%ntid.y":   func(*warp, int) uint64 { return 1 },
	"%ntid.z":   func(*warp, int) uint64 { return 1 },
	"%ctaid.x":  func(w *warp, _ int) uint64 { return uint64(w.b.id) },
	"%ctaid.y":  func(*warp, int) uint64 { return 0 },
	"%ctaid.z":  func(*warp, int) uint64 { return 0 },
	"%nctaid.x": func(w *warp, _ int) uint64 { return uint64(w.b.run.grid) },
	"%nctaid.y": func(*warp, int) uint64 { return 1 },
	"%nctaid.z": func(*warp, int) uint64 { return 1 },
	"%laneid":   func(_ *warp, l int) uint64 { return uint64(l) },
	"%warpid":   func(w *warp, _ int) uint64 { return uint64(w.first / 32) },
	"%smid":     func(w *warp, _ int) uint64 { return uint64(w.b.showSM()) },
	"%nsmid":    func(w *warp, _ int) uint64 { return uint64(w.b.run.dev.cfg.SMs) },
	"%clock":    func(w *warp, _ int) uint64 { return w.b.run.dev.cycles() & 0xFFFFFFFF },
	"%clock64":  func(w *warp, _ int) uint64 { return w.b.run.dev.cycles() },

	"%globaltimer":  func(w *warp, _ int) uint64 { return w.b.run.dev.now },
	"%lanemask_eq":  func(_ *warp, l int) uint64 { return 1 << l },
	"%lanemask_lt":  func(_ *warp, l int) uint64 { return 1<<l - 1 },
	"%lanemask_le":  func(_ *warp, l int) uint64 { return 2<<l - 1 },
	"%lanemask_gt":  func(_ *warp, l int) uint64 { return 0xFFFFFFFF &^ (2<<l - 1) },
	"%lanemask_ge":  func(_ *warp, l int) uint64 { return 0xFFFFFFFF &^ (1<<l - 1) },
	"%dynamic_smem": func(w *warp, _ int) uint64 { return uint64(w.b.dynamic) },
}

func init() { specials["%dynamic_smem_size"] = specials["%dynamic_smem"] }

func mov(p *parser, in *inst) {
	t := p.lastType(in)
	p.arity(in, 2)
	d, s := in.args[0], in.args[1]
	in.unit, in.width = alu, t.bits
	switch {
	case s.kind == argName:
		f, ok := specials[s.name]
		if !ok {
			p.fail("special register %q is not known", s.name)
		}
		p.writes(in, d)
		r := p.reg(in, d)
		in.unit = uniform
		in.exec = func(w *warp, m uint32) { all(m, func(l int) { w.r[r][l] = f(w, l) & t.mask() }) }
	case d.kind == argList:
		p.writes(in, d)
		p.reads(in, s)
		part := t.bits / len(d.list)
		in.width = part
		k := uint64(1)<<part - 1
		in.exec = func(w *warp, m uint32) {
			v := *w.val(&s)
			for i, x := range d.list {
				if x.kind == argReg {
					all(m, func(l int) { w.r[x.reg][l] = v[l] >> (part * i) & k })
				}
			}
		}
	case s.kind == argList:
		p.writes(in, d)
		p.reads(in, s)
		r, part := p.reg(in, d), t.bits/len(s.list)
		k := uint64(1)<<part - 1
		in.exec = func(w *warp, m uint32) {
			all(m, func(l int) {
				var v uint64
				for i := range s.list {
					v |= w.val(&s.list[i])[l] & k << (part * i)
				}
				w.r[r][l] = v
			})
		}
	default:
		k := t.mask()
		p.set1(in, alu, t, func(x uint64) uint64 { return x & k })
	}
}

// cvta makes an address generic, or of one space. Generic addresses of shared memory lie in a window of their own.
func cvta(p *parser, in *inst) {
	to := in.has("to")
	if in.has("shared") {
		if to {
			p.set1(in, alu, types["u64"], func(x uint64) uint64 { return x - sharedWindow })
		} else {
			p.set1(in, alu, types["u64"], func(x uint64) uint64 { return x + sharedWindow })
		}
		return
	}
	if !in.has("global") && !in.has("param") {
		p.fail("%s is not known", in.full)
	}
	p.set1(in, alu, types["u64"], func(x uint64) uint64 { return x })
}
