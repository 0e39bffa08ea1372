package ptxvm

// An activeFault is a fault at its place, with what it remembers.
type activeFault struct {
	*Fault
	prev [4][32]uint64 // the pipe's last result, by partition and lane
	seen uint64        // activations
	hits uint64        // how often it changed a result
}

// modelled are the units that the machine can break.
var modelled = map[Unit]bool{
	imad: true, alu: true, lop3: true, shift: true, fma32: true, fma64: true, fma16: true, tensor16: true, tensor8: true, tensor64: true, tensorInt8: true, mufu: true, cvt: true,
	lsuAddr: true, lsuData: true, smem: true, regfile: true, l1Tag: true, l1Data: true, hbm: true, atomicUnit: true, shuffle: true, predicate: true,
	uniform: true, branch: true, constant: true,
}

func (d *Device) install(f *Fault) {
	sm := f.Where.SM
	if links[f.unit] && d.cfg.Links && f.Where.Net == "" && f.Class != "bridge" {
		a := &activeFault{Fault: f}
		d.faults, d.links = append(d.faults, a), append(d.links, a)
		return
	}
	if !modelled[f.unit] || sm < 0 || sm >= len(d.sms) || f.Where.Net != "" {
		d.NotModelled = append(d.NotModelled, f.ID)
		return
	}
	a := &activeFault{Fault: f}
	d.faults = append(d.faults, a)
	if f.unit == hbm {
		d.memory = append(d.memory, a)
		return
	}
	s := d.sms[sm]
	s.faults[f.unit] = append(s.faults[f.unit], a)
	s.faulty = true
}

// Hits says how often each installed fault has acted.
func (d *Device) Hits() map[string]uint64 {
	m := map[string]uint64{}
	for _, f := range d.faults {
		m[f.ID] = f.hits
	}
	return m
}

// stepFaulty is step on an SM that has faults: the instruction runs, then its results are struck.
func (w *warp) stepFaulty(in *inst, m uint32) {
	if w.b.run.dev.cfg.Tap != nil {
		w.tapped(in, m)
		return
	}
	hit := len(w.b.sm.faults[in.unit]) > 0 || len(w.b.sm.faults[regfile]) > 0
	if !hit || len(in.dst) == 0 {
		in.exec(w, m)
		if hit {
			w.repeat(in, m)
		}
		return
	}
	// Operands as they were: the destination may be one of them.
	var a, b lane
	k := 0
	for i := range in.args {
		if i == 0 && in.args[i].kind != argAddr || in.args[i].kind != argReg && in.args[i].kind != argImm {
			continue
		}
		if k == 0 {
			a = *w.val(&in.args[i])
		} else if k == 1 {
			b = *w.val(&in.args[i])
		}
		k++
	}
	w.again = 0
	saved := make([]lane, len(in.dst))
	for i, r := range in.dst {
		saved[i] = w.r[r]
	}
	in.exec(w, m)
	for i, r := range in.dst {
		all(m, func(l int) {
			v := w.r[r][l]
			n := w.strike(in.unit, l, in.width, v, a[l], b[l])
			if w.dropped {
				n = saved[i][l]
			}
			n = w.strike(regfile, l, in.width, n, a[l], b[l])
			if w.dropped {
				n = saved[i][l]
			}
			w.r[r][l] = n
		})
	}
	if w.again != 0 && in.kind == kindPlain {
		in.exec(w, w.again)
	}
}

// repeat runs an instruction that writes no register, as an atomic, once more where a fault of class dup says so.
func (w *warp) repeat(in *inst, m uint32) {
	if in.kind != kindPlain {
		return
	}
	for _, f := range w.b.sm.faults[in.unit] {
		if f.Class != "dup" || f.Where.Part != w.part() {
			continue
		}
		all(m&f.lanes, func(l int) {
			if f.holds(w, 0, 0) {
				f.hits++
				in.exec(w, 1<<l)
			}
		})
	}
}

// elsewhere is the value that the same lane of another SM has in the register that this instruction writes first.
func (w *warp) elsewhere(l int, v uint64) uint64 {
	sms := w.b.run.dev.sms
	for k := 1; k < len(sms); k++ {
		for _, b := range sms[(w.b.sm.id+k)%len(sms)].blocks {
			if i := w.first / 32; i < len(b.warps) && len(w.in.dst) > 0 {
				return b.warps[i].r[w.in.dst[0]][l]
			}
		}
	}
	return v
}

// SetEnv changes the state that the device is in.
func (d *Device) SetEnv(e Env) { d.cfg.Env = e }

// branchFaulty lets a broken branch unit take the other way.
func (w *warp) branchFaulty(in *inst, m uint32) uint32 {
	if in.pred < 0 {
		return m
	}
	all(w.groups[w.cur].mask, func(l int) {
		t := uint64(m >> l & 1)
		if n := w.strike(branch, l, 1, t, t, 0); n != t {
			m ^= 1 << l
		}
	})
	return m
}

// strike gives what v, a result of width bits in lane l, becomes in a unit of this warp's SM and partition.
func (w *warp) strike(u Unit, l, width int, v, a, b uint64) uint64 {
	w.dropped = false
	part := w.part()
	for _, f := range w.b.sm.faults[u] {
		if f.Where.Part != part || f.lanes>>l&1 == 0 || u == l1Data && f.Class == "drop" {
			continue // a store that the L1 misses is dealt with when it arrives
		}
		was := f.prev[part][l]
		f.prev[part][l] = v
		if !f.holds(w, a, b) {
			continue
		}
		n, acts := f.effect(w, l, v, was)
		if !acts {
			continue
		}
		if width < 64 {
			n &= 1<<width - 1
		}
		if n != v || w.dropped || w.again>>l&1 != 0 {
			f.hits++
		}
		v = n
	}
	return v
}

// holds reports whether the fault's condition is met.
func (f *activeFault) holds(w *warp, a, b uint64) bool {
	return (f.only == "" || f.only == w.in.full) && f.meets(w.b.run.dev, w.prev, a, b)
}

// meets is holds on a device that last did prev.
func (f *activeFault) meets(d *Device, prev string, a, b uint64) bool {
	if f.seen++; f.nth != 0 && f.seen != f.nth {
		return false
	}
	c := &f.When
	env := &d.cfg.Env
	switch {
	case uint32(a)&c.A[0] != c.A[1] || uint32(b)&c.B[0] != c.B[1],
		c.PrevOp != "" && c.PrevOp != prev,
		env.Util < c.MinUtil,
		len(c.TempC) == 2 && (env.TempC < c.TempC[0] || env.TempC > c.TempC[1]),
		len(c.MHz) == 2 && (env.MHz < c.MHz[0] || env.MHz > c.MHz[1]),
		env.AgeS < c.AfterS:
		return false
	}
	return c.P >= 1 || d.rng.float64() < c.P
}

// effect gives the struck value. Masks are 32 bits and strike the low half of a result, and with addr_xor an address.
func (f *activeFault) effect(w *warp, l int, v, was uint64) (uint64, bool) {
	e := &f.Do
	switch f.Class {
	case "drop":
		w.dropped = true
		return v, true
	case "transition":
		// Bits that change against the last result arrive late: the last one's value is still there.
		late := (v ^ was) & uint64(e.Xor|e.Or|^e.And)
		return v ^ late, true
	case "swap":
		return w.neighbour(l^1, v), true
	case "dup":
		w.again |= 1 << l
	case "bridge":
		// The bits that or names are shorted so that a one wins, those that and clears so that a zero does.
		x := uint32(v)
		if x&e.Or != 0 {
			x |= e.Or
		}
		if short := ^e.And; x&short != short {
			x &^= short
		}
		return v&^0xFFFFFFFF | uint64(x^e.Xor), true
	}
	switch {
	case e.Replace == "prev":
		return was, true
	case e.Replace == "zero":
		return 0, true
	case e.Replace == "other_sm":
		return w.elsewhere(l, v), true
	case e.lane >= 0:
		return w.neighbour(e.lane, v), true
	}
	hi := v &^ 0xFFFFFFFF
	x := uint32(v)
	if e.AddrXor != 0 {
		x ^= e.AddrXor
	}
	return hi | uint64(x&e.And|e.Or) ^ uint64(e.Xor), true
}

// neighbour is another lane's value of the register that this instruction writes first.
func (w *warp) neighbour(l int, v uint64) uint64 {
	if len(w.in.dst) == 0 {
		return v
	}
	return w.r[w.in.dst[0]][l]
}
