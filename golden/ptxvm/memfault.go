package ptxvm

// fromMemory gives what comes back from memory for v, n bytes at addr. A fault there sits in a channel (the line's number
// over 4, modulo the number of SMs, stands for where.sm), in one of four banks (the line's number modulo 4) and on one of 32
// words of a line of 128 bytes: where.lane. It strikes whatever SM reads. The machine has no L2: each load that the SM's L1
// does not serve comes from memory.
func (w *warp) fromMemory(addr uint64, n int, v uint64) uint64 {
	d := w.b.run.dev
	for _, f := range d.memory {
		line := addr / lineBytes
		if int(line%4) != f.Where.Part || int(line/4%uint64(len(d.sms))) != f.Where.SM {
			continue
		}
		for at := addr; at < addr+uint64(n); at += 4 {
			lane, shift := int(at%lineBytes/4), 8*(at-addr)
			if f.lanes>>lane&1 == 0 {
				continue
			}
			// The word that the bytes are in, at their place in it.
			in := 8 * (at % 4)
			word := v >> shift & 0xFFFFFFFF << in & 0xFFFFFFFF
			was := f.prev[f.Where.Part][lane]
			f.prev[f.Where.Part][lane] = word
			if !f.holds(w, word, 0) {
				continue
			}
			w.dropped = false
			s, acts := f.effect(w, w.at, word, was)
			if !acts || w.dropped {
				continue
			}
			keep := ^uint64(0)
			if n < 4 {
				keep = 1<<(8*n) - 1
			}
			if s = s >> in & keep; s != v>>shift&keep&0xFFFFFFFF {
				f.hits++
			}
			v = v&^(keep&0xFFFFFFFF<<shift) | s&0xFFFFFFFF<<shift
		}
	}
	return v
}

// falseHit gives the line that the L1 serves for line: another one that it holds, where a fault in the tags says so.
func (w *warp) falseHit(line uint64, l int, c *[lineBytes]byte) *[lineBytes]byte {
	if len(w.b.sm.faults[l1Tag]) == 0 {
		return c
	}
	if other := w.b.sm.l1[w.strike(l1Tag, l, 64, line, line, 0)&^(lineBytes-1)]; other != nil {
		return other
	}
	return c
}

// keepsStale reports whether the L1 misses a store that goes through it, and keeps the line as it was: a fault of class drop
// in its data.
func (w *warp) keepsStale(s *store) bool {
	part := w.part()
	for _, f := range w.b.sm.faults[l1Data] {
		if f.Class == "drop" && f.Where.Part == part && f.lanes>>s.lane&1 != 0 && f.holds(w, s.val, 0) {
			f.hits++
			return true
		}
	}
	return false
}
