package ptxvm

import (
	"fmt"
	"math/bits"
)

type wait uint8

const (
	runs wait = iota
	waitLanes
	waitBlock
	waitSleep
)

// A group is lanes of a warp that are at the same instruction.
type group struct {
	pc    int
	mask  uint32
	wait  wait
	bar   int    // the barrier, with waitBlock
	until uint64 // with waitSleep
}

// A warp is 32 lanes, each of which may be somewhere else.
type warp struct {
	b       *block
	first   int // thread of lane 0
	r       []lane
	undef   []uint32 // for each register, lanes in which nobody has written it
	cc      uint32
	groups  []group
	cur     int    // the group that runs
	in      *inst  // the instruction that runs
	at      int    // lane to blame in a trap
	prev    string // stem of the instruction before
	stores  []store
	dropped bool   // the last strike lost the result
	again   uint32 // lanes in which the instruction is to run twice
}

func (w *warp) trap(kind, format string, args ...any) {
	t := &Trap{Kind: kind, Detail: fmt.Sprintf(format, args...), SM: w.b.sm.id, Thread: fmt.Sprintf("%d.%d", w.b.id, w.first+w.at)}
	if w.in != nil {
		t.Line = w.in.line
	}
	panic(t)
}

// pick chooses a group that can run, or -1: the one furthest behind, or any when the machine is hostile.
func (w *warp) pick() int {
	best, n := -1, 0
	hostile := w.b.run.dev.cfg.Hostile
	for i := range w.groups {
		g := &w.groups[i]
		if g.wait == waitSleep && g.until <= w.b.run.dev.now {
			g.wait = runs
		}
		if g.wait != runs {
			continue
		}
		n++
		if best < 0 || !hostile && g.pc < w.groups[best].pc || hostile && w.b.run.dev.rng.intN(n) == 0 {
			best = i
		}
	}
	return best
}

// merge joins running groups that are at the same place.
func (w *warp) merge() {
	for i := 0; i < len(w.groups); i++ {
		for j := i + 1; j < len(w.groups); j++ {
			a, b := &w.groups[i], &w.groups[j]
			if a.pc == b.pc && a.wait == runs && b.wait == runs {
				a.mask |= b.mask
				w.groups = append(w.groups[:j], w.groups[j+1:]...)
				j--
			}
		}
	}
}

// turn runs up to n instructions; false when the warp could run none.
func (w *warp) turn(n int) bool {
	d := w.b.run.dev
	if d.cfg.Hostile && len(w.stores) > 0 && d.rng.intN(3) == 0 {
		w.drainSome()
	}
	did := false
	insts := w.b.run.entry.insts
	for ; n > 0; n-- {
		if len(w.groups) != 1 || w.groups[0].wait != runs {
			if len(w.groups) > 1 {
				w.merge()
			}
			if w.cur = w.pick(); w.cur < 0 {
				return did
			}
		} else {
			w.cur = 0
		}
		did = true
		g := &w.groups[w.cur]
		in := &insts[g.pc]
		w.in, w.at = in, bits.TrailingZeros32(g.mask)
		m := g.mask
		if in.pred >= 0 {
			m &= w.predicate(in)
		}
		d.warps++
		d.lanes += uint64(bits.OnesCount32(m))
		if w.b.run.budget--; w.b.run.budget == 0 {
			w.trap("timeout", "the launch does not end")
		}
		switch in.kind {
		case kindPlain, kindYield:
			if m != 0 {
				w.step(in, m)
			}
			w.groups[w.cur].pc++
			if in.kind == kindYield && m != 0 {
				w.sleep(m)
				return true
			}
		case kindBranch:
			w.branch(in, m)
		case kindRet:
			w.exit(m)
			if len(w.groups) == 0 {
				return true
			}
		case kindBar:
			w.barrier(in, m)
		case kindCollect:
			w.collect(in, m)
		}
		w.prev = in.stem
	}
	return did
}

// predicate gives the lanes whose guard holds.
func (w *warp) predicate(in *inst) uint32 {
	g := w.groups[w.cur].mask
	if bad := w.undef[in.pred] & g; bad != 0 {
		w.at = bits.TrailingZeros32(bad)
		w.trap("uninitialised", "a predicate that nobody has set guards %s", in.full)
	}
	p := &w.r[in.pred]
	var m uint32
	for l := range 32 {
		m |= uint32(p[l]&1) << l
	}
	if in.predNeg {
		m = ^m
	}
	return m & g
}

// step runs an instruction in the lanes of m, and what is broken with it.
func (w *warp) step(in *inst, m uint32) {
	var u uint32
	for _, r := range in.src {
		u |= w.undef[r]
	}
	for _, r := range in.dst {
		w.undef[r] = w.undef[r]&^m | u&m
	}
	if trace := w.b.run.dev.cfg.Trace; trace != nil {
		trace(Operation{m, w, in})
	}
	if w.b.sm.faulty {
		w.stepFaulty(in, m)
		return
	}
	in.exec(w, m)
}

// split takes the lanes of m out of the running group, which may end.
func (w *warp) split(m uint32) {
	g := &w.groups[w.cur]
	g.mask &^= m
	if g.mask == 0 {
		w.groups = append(w.groups[:w.cur], w.groups[w.cur+1:]...)
	}
}

func (w *warp) sleep(m uint32) {
	g := w.groups[w.cur]
	w.split(m)
	w.groups = append(w.groups, group{pc: g.pc, mask: m, wait: waitSleep, until: w.b.run.dev.now + w.sleepTime(m)})
}

// sleepTime is the longest that a lane asks for.
func (w *warp) sleepTime(m uint32) uint64 {
	var t uint64
	v := w.val(&w.in.args[0])
	all(m, func(l int) { t = max(t, v[l]&0xFFFFFFFF) })
	return min(t, 1_000_000)
}

func (w *warp) branch(in *inst, m uint32) {
	if w.b.sm.faulty {
		m = w.branchFaulty(in, m)
	}
	g := &w.groups[w.cur]
	rest := g.mask &^ m
	switch {
	case rest == 0:
		g.pc = in.jumps[0]
	case m == 0:
		g.pc++
	default:
		g.pc++
		g.mask = rest
		w.groups = append(w.groups, group{pc: in.jumps[0], mask: m})
	}
}

func (w *warp) exit(m uint32) {
	w.groups[w.cur].pc++
	w.split(m)
	w.b.live -= bits.OnesCount32(m)
	// Those who wait for the lanes that left wait no longer.
	w.release()
	w.b.checkBarriers()
}

// collect runs an instruction that joins lanes, once all those it names are there.
func (w *warp) collect(in *inst, m uint32) {
	g := &w.groups[w.cur]
	if m != g.mask {
		// Lanes whose guard does not hold walk on.
		rest := g.mask &^ m
		g.mask = rest
		g.pc++
		if m == 0 {
			return
		}
		w.groups = append(w.groups, group{pc: g.pc - 1, mask: m})
		w.cur = len(w.groups) - 1
		g = &w.groups[w.cur]
	}
	g.wait = waitLanes
	w.release()
}

// release runs every collective whose lanes have all come.
func (w *warp) release() {
	live := uint32(0)
	for _, g := range w.groups {
		live |= g.mask
	}
	for again := true; again; {
		again = false
		for i := range w.groups {
			if w.groups[i].wait != waitLanes {
				continue
			}
			in := &w.b.run.entry.insts[w.groups[i].pc]
			var there uint32
			for _, g := range w.groups {
				if g.wait == waitLanes && g.pc == w.groups[i].pc {
					there |= g.mask
				}
			}
			l := bits.TrailingZeros32(w.groups[i].mask)
			want := in.members(w, l)
			if want>>l&1 == 0 {
				w.in, w.at = in, l
				w.trap("divergence", "lane %d is not among the lanes %08x that it names", l, want)
			}
			if in.full[:3] != "mma" {
				want &= live // those that have ended are not waited for
			}
			if there&want != want {
				continue
			}
			w.gather(i, want)
			saved := w.in
			w.in, w.at = in, l
			w.step(in, want)
			w.in = saved
			again = true
			break
		}
	}
}

// gather makes one running group, past the instruction, of the lanes in want that wait at group i's place.
func (w *warp) gather(i int, want uint32) {
	pc := w.groups[i].pc
	var rest []group
	for _, g := range w.groups {
		if g.wait == waitLanes && g.pc == pc {
			g.mask &^= want
			if g.mask == 0 {
				continue
			}
		}
		rest = append(rest, g)
	}
	w.groups = append(rest, group{pc: pc + 1, mask: want})
	w.cur = len(w.groups) - 1
}

func (w *warp) barrier(in *inst, m uint32) {
	g := &w.groups[w.cur]
	if m != g.mask {
		g.mask &^= m
		g.pc++
		if m == 0 {
			return
		}
		w.groups = append(w.groups, group{pc: g.pc - 1, mask: m})
		g = &w.groups[len(w.groups)-1]
	}
	g.wait, g.bar = waitBlock, int(in.args[0].off)
	w.drain()
	w.b.waiting[g.bar] += bits.OnesCount32(m)
	w.b.checkBarriers()
}

// checkBarriers lets go of a barrier to which all living threads have come.
func (b *block) checkBarriers() {
	for id, n := range b.waiting {
		if n == 0 || n < b.live {
			continue
		}
		b.waiting[id] = 0
		if b.run.dev.cfg.Races {
			b.joinAll()
		}
		for _, w := range b.warps {
			for i := range w.groups {
				if g := &w.groups[i]; g.wait == waitBlock && g.bar == id {
					g.wait = runs
					g.pc++
				}
			}
		}
	}
}
