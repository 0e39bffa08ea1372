package ptxvm

import "encoding/binary"

// A store is on its way to global memory: other SMs, and other warps of this one, do not see it yet.
type store struct {
	addr uint64
	size int
	val  uint64
	lane int // that stored it
}

// An access is what a load, store or atomic does to memory.
type access struct {
	space  string // global, shared, param, or "" for generic
	t      typ
	strong bool // volatile, relaxed, acquire, release, or an atomic: ordered with others of its kind, past the L1
	cached bool // may be served by the SM's L1
}

func (p *parser) access(in *inst) access {
	a := access{t: p.lastType(in), cached: true}
	for _, m := range in.mods {
		switch m {
		case "global", "shared", "param", "const":
			a.space = m
		case "shared::cta":
			a.space = "shared"
		case "volatile", "relaxed", "acquire", "release", "cv":
			a.strong, a.cached = m != "cv", false
		case "cg":
			a.cached = false
		case "ca", "cs", "lu", "nc", "wb", "wt", "v2", "v4", "gpu", "sys", "cta", "weak":
		case "local", "cluster", "shared::cluster", "mmio":
			p.fail("%s: .%s is not known", in.full, m)
		}
	}
	return a
}

// address gives the lanes' addresses, struck by what is broken in the address path.
func (w *warp) address(a *arg, l int) uint64 {
	addr := uint64(a.off)
	if a.reg >= 0 {
		if w.undef[a.reg]>>l&1 != 0 {
			w.at = l
			w.trap("uninitialised", "an address that nobody has computed")
		}
		addr += w.r[a.reg][l]
	}
	if w.b.sm.faulty {
		addr = w.strike(lsuAddr, l, 64, addr, addr, 0)
	}
	return addr
}

// place finds the memory at an address: shared memory by its window, when the space is generic.
func (w *warp) space(ac *access, addr uint64, n int, l int) (shared bool, off int, a *alloc) {
	w.at = l
	if addr%uint64(n) != 0 {
		w.trap("misaligned", "%#x for %d bytes", addr, n)
	}
	if ac.space == "" && addr >= sharedWindow && addr-sharedWindow < uint64(len(w.b.shared)) {
		addr, shared = addr-sharedWindow, true
	}
	if shared || ac.space == "shared" {
		if addr+uint64(n) > uint64(len(w.b.shared)) || addr+uint64(n) < addr {
			w.trap("illegal_address", "%#x in %d bytes of shared memory", addr, len(w.b.shared))
		}
		return true, int(addr), nil
	}
	a, off = w.b.run.dev.find(addr, n)
	if a == nil {
		w.trap("illegal_address", "%#x for %d bytes", addr, n)
	}
	return false, off, a
}

func get(b []byte, n int) uint64 {
	switch n {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func put(b []byte, n int, v uint64) {
	switch n {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

// load reads n bytes for lane l. undef says that some of them were never written.
func (w *warp) load(ac *access, addr uint64, n, l int) (v uint64, undef bool) {
	if ac.space == "param" {
		if addr+uint64(n) > uint64(len(w.b.run.params)) {
			w.trap("illegal_address", "parameter byte %d", addr)
		}
		return get(w.b.run.params[addr:], n), false
	}
	if ac.space == "const" {
		c := w.b.run.entry.mod.consts
		if addr%uint64(n) != 0 || addr+uint64(n) > uint64(len(c)) || addr > uint64(len(c)) {
			w.trap("illegal_address", "constant byte %d of %d", addr, len(c))
		}
		return get(c[addr:], n), false
	}
	shared, off, a := w.space(ac, addr, n, l)
	if shared {
		for i := range n {
			undef = undef || w.b.sundef[off+i]
		}
		w.seen(w.b.swords, off, l, false, ac.strong, n)
		v = get(w.b.shared[off:], n)
		if w.b.sm.faulty {
			v = w.strike(smem, l, 8*n, v, v, 0)
		}
		return v, undef
	}
	for i := range w.stores {
		if s := &w.stores[i]; s.addr < addr+uint64(n) && addr < s.addr+uint64(s.size) {
			w.drain()
			break
		}
	}
	for i := off; i < off+n; i++ {
		undef = undef || a.undef[i/64]>>(i%64)&1 != 0
	}
	w.seen(a.words, off, l, false, ac.strong, n)
	if !ac.cached {
		return w.fromMemory(addr, n, get(a.data[off:], n)), undef
	}
	line := addr &^ (lineBytes - 1)
	c := w.b.sm.l1[line]
	if c == nil {
		c = new([lineBytes]byte)
		copy(c[:], a.data[max(off-int(addr-line), 0):])
		if len(w.b.run.dev.memory) > 0 {
			for i := 0; i < lineBytes; i += 4 {
				put(c[i:], 4, w.fromMemory(line+uint64(i), 4, get(c[i:], 4)))
			}
		}
		w.b.sm.l1[line] = c
	}
	if w.b.sm.faulty {
		c = w.falseHit(line, l, c)
	}
	v = get(c[addr-line:], n)
	if w.b.sm.faulty {
		v = w.strike(l1Data, l, 8*n, v, v, 0)
	}
	return v, undef
}

// save writes n bytes for lane l.
func (w *warp) save(ac *access, addr uint64, n int, v uint64, undef bool, l int) {
	shared, off, a := w.space(ac, addr, n, l)
	if w.b.sm.faulty {
		u := lsuData
		if shared {
			u = smem
		}
		if v = w.strike(u, l, 8*n, v, v, 0); w.dropped {
			return
		}
	}
	if shared {
		for i := range n {
			w.b.sundef[off+i] = undef
		}
		w.seen(w.b.swords, off, l, true, ac.strong, n)
		put(w.b.shared[off:], n, v)
		return
	}
	if undef {
		w.trap("uninitialised", "a value that nobody has computed is stored at %#x", addr)
	}
	for i := off; i < off+n; i++ {
		a.undef[i/64] &^= 1 << (i % 64)
	}
	w.seen(a.words, off, l, true, ac.strong, n)
	w.stores = append(w.stores, store{addr, n, v, l})
	if ac.strong || !w.b.run.dev.cfg.Hostile || len(w.stores) > 256 {
		w.drain()
	}
}

// drain lets all stores of the warp arrive.
func (w *warp) drain() {
	for i := range w.stores {
		w.arrive(&w.stores[i])
	}
	w.stores = w.stores[:0]
}

// drainSome lets some of the oldest arrive.
func (w *warp) drainSome() {
	n := 1 + w.b.run.dev.rng.intN(len(w.stores))
	for i := range n {
		w.arrive(&w.stores[i])
	}
	w.stores = append(w.stores[:0], w.stores[n:]...)
}

func (w *warp) arrive(s *store) {
	a, off := w.b.run.dev.find(s.addr, s.size)
	put(a.data[off:], s.size, s.val)
	// The SM's own L1 is written through; those of other SMs keep what they have.
	if c := w.b.sm.l1[s.addr&^(lineBytes-1)]; c != nil && !w.keepsStale(s) {
		put(c[s.addr&(lineBytes-1):], s.size, s.val)
	}
}

func ld(p *parser, in *inst) {
	p.arity(in, 2)
	if in.args[1].kind != argAddr {
		p.fail("%s: want an address", in.full)
	}
	ac := p.access(in)
	addr := in.args[1]
	if addr.name != "" {
		if ac.space != "param" {
			p.fail("%s: %q is not known", in.full, addr.name)
		}
		addr.off += int64(p.param(addr.name))
	}
	in.args[1] = addr
	p.writes(in, in.args[0])
	p.reads(in, addr)
	in.unit, in.width = lsuData, ac.t.bits
	if ac.space == "param" || ac.space == "const" {
		in.unit = constant
	}
	ds := []arg{in.args[0]}
	if ds[0].kind == argList {
		ds = ds[0].list
	}
	acquire := in.has("acquire")
	n := ac.t.bytes
	in.exec = func(w *warp, m uint32) {
		var addrs lane
		all(m, func(l int) { addrs[l] = w.address(&addr, l) })
		for i, d := range ds {
			if d.kind != argReg {
				continue
			}
			all(m, func(l int) {
				w.at = l
				if i == 0 && addrs[l]%uint64(n*len(ds)) != 0 {
					w.trap("misaligned", "%#x for %d values of %d bytes", addrs[l], len(ds), n)
				}
				v, undef := w.load(&ac, addrs[l]+uint64(i*n), n, l)
				if ac.t.signed {
					v = uint64(sext(v, ac.t))
				}
				w.r[d.reg][l] = v
				if undef {
					w.undef[d.reg] |= 1 << l
				} else {
					w.undef[d.reg] &^= 1 << l
				}
			})
		}
		if acquire {
			w.acquire(m)
		}
	}
}

func (p *parser) param(name string) int {
	for _, q := range p.entry.Params {
		if q.Name == name {
			return q.Offset
		}
	}
	p.fail("parameter %q is not known", name)
	return 0
}

func st(p *parser, in *inst) {
	p.arity(in, 2)
	ac := p.access(in)
	if in.args[0].kind != argAddr || in.args[0].name != "" || ac.space == "param" {
		p.fail("%s: want an address", in.full)
	}
	p.reads(in, in.args...)
	in.unit, in.width = lsuData, ac.t.bits
	addr, vs := in.args[0], []arg{in.args[1]}
	if vs[0].kind == argList {
		vs = vs[0].list
	}
	release := in.has("release")
	n, k := ac.t.bytes, ac.t.mask()
	in.exec = func(w *warp, m uint32) {
		if release {
			w.release32(m)
		}
		all(m, func(l int) {
			base := w.address(&addr, l)
			w.at = l
			if base%uint64(n*len(vs)) != 0 {
				w.trap("misaligned", "%#x for %d values of %d bytes", base, len(vs), n)
			}
			for i := range vs {
				a := &vs[i]
				undef := a.kind == argReg && w.undef[a.reg]>>l&1 != 0
				w.save(&ac, base+uint64(i*n), n, w.val(a)[l]&k, undef, l)
			}
		})
	}
}

// atom is an atomic, with or without a result. It acts in the L2, or in shared memory.
func atom(p *parser, in *inst) {
	ac := p.access(in)
	ac.strong, ac.cached = true, false
	if ac.t.float {
		p.fail("%s is not known", in.full)
	}
	args := in.args
	hasResult := in.op == "atom"
	var dst arg
	if hasResult {
		dst, args = args[0], args[1:]
		p.writes(in, dst)
	}
	op := ""
	for _, m := range in.mods {
		switch m {
		case "add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec":
			op = m
		}
	}
	want := 2
	if op == "cas" {
		want = 3
	}
	if op == "" || len(args) != want || args[0].kind != argAddr || args[0].name != "" {
		p.fail("%s is not known", in.full)
	}
	p.reads(in, args...)
	in.unit, in.width = atomicUnit, ac.t.bits
	addr, a, b := args[0], args[1], immediate(0)
	if want == 3 {
		b = args[2]
	}
	n, k, t := ac.t.bytes, ac.t.mask(), ac.t
	acquire, release := in.has("acquire") || in.has("acq_rel"), in.has("release") || in.has("acq_rel")
	in.exec = func(w *warp, m uint32) {
		w.drain()
		if release {
			w.release32(m)
		}
		all(m, func(l int) {
			at := w.address(&addr, l)
			shared, off, al := w.space(&ac, at, n, l)
			mem := w.b.shared
			if shared {
				w.seen(w.b.swords, off, l, true, true, n)
				for i := range n {
					if w.b.sundef[off+i] {
						w.trap("uninitialised", "an atomic on shared bytes that nobody has written")
					}
				}
			} else {
				mem = al.data
				w.seen(al.words, off, l, true, true, n)
				if al.undef[off/64]>>(off%64)&1 != 0 {
					w.trap("uninitialised", "an atomic on bytes that nobody has written, at %#x", at)
				}
			}
			if a.kind == argReg && w.undef[a.reg]>>l&1 != 0 || b.kind == argReg && w.undef[b.reg]>>l&1 != 0 {
				w.trap("uninitialised", "an atomic with a value that nobody has computed")
			}
			old := get(mem[off:], n)
			v := atomic(op, t, old, w.val(&a)[l]&k, w.val(&b)[l]&k)
			if w.b.sm.faulty {
				v = w.strike(atomicUnit, l, t.bits, v, old, w.val(&a)[l])
			}
			put(mem[off:], n, v&k)
			w.sync(at, l, acquire)
			if hasResult && dst.kind == argReg {
				w.r[dst.reg][l] = old
				w.undef[dst.reg] &^= 1 << l
			}
		})
	}
}

func atomic(op string, t typ, old, a, b uint64) uint64 {
	less := old < a
	if t.signed {
		less = sext(old, t) < sext(a, t)
	}
	switch op {
	case "add":
		return old + a
	case "and":
		return old & a
	case "or":
		return old | a
	case "xor":
		return old ^ a
	case "exch":
		return a
	case "cas":
		if old == a {
			return b
		}
		return old
	case "inc":
		if old >= a {
			return 0
		}
		return old + 1
	case "dec":
		if old == 0 || old > a {
			return a
		}
		return old - 1
	case "min":
		if less {
			return old
		}
		return a
	default:
		if less {
			return a
		}
		return old
	}
}

// fence orders what the lane did before with what it does after: its stores arrive, and its SM's L1 forgets.
func fence(p *parser, in *inst) {
	p.arity(in, 0)
	for _, m := range in.mods {
		switch m {
		case "gl", "sys", "gpu", "cta", "sc", "acq_rel":
		default:
			p.fail("%s is not known", in.full)
		}
	}
	in.unit = barrier
	in.exec = func(w *warp, m uint32) {
		w.drain()
		if !in.has("cta") {
			clear(w.b.sm.l1)
		}
		w.release32(m)
		w.acquire(m)
	}
}
