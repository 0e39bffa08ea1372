package ptxvm

// The race detector keeps a vector clock for each thread (Mattern; FastTrack of Flanagan and Freund, 2009). Threads of a
// block share most of it after each barrier, so a clock is a base shared by many and the thread's own count.

// clocks is what is known of every thread, by its number in the grid.
type clocks struct{ v []uint32 }

type threadClock struct {
	base  *clocks
	own   uint32
	rel   *clocks // what a fence has made ready to be released
	heard *clocks // what atomics have read since the last fence
}

type epoch struct {
	thread int32
	clk    uint32
}

// A shadow is what the detector knows of 4 bytes.
type shadow struct {
	write  epoch // clk 0: none
	strong bool  // the write was
	reads  []readEpoch
}

type readEpoch struct {
	epoch
	strong bool
}

func newClocks(r *run, b *block) []threadClock {
	zero := &clocks{make([]uint32, r.grid*r.threads)}
	out := make([]threadClock, r.threads)
	for i := range out {
		out[i] = threadClock{base: zero, own: 1}
	}
	return out
}

func (c *clocks) join(o *clocks) *clocks {
	if o == nil || c == o {
		return c
	}
	n := &clocks{append([]uint32{}, c.v...)}
	for i, x := range o.v {
		n.v[i] = max(n.v[i], x)
	}
	return n
}

// full is the thread's whole clock.
func (w *warp) full(t int) *clocks {
	c := &w.b.clk[t]
	n := &clocks{append([]uint32{}, c.base.v...)}
	n.v[w.b.id*w.b.threads+t] = c.own
	return n
}

// joinAll orders all threads of a block, as a barrier does.
func (b *block) joinAll() { b.joinThreads(0, len(b.clk), nil) }

func (b *block) joinThreads(from, n int, in func(t int) bool) {
	next := &clocks{append([]uint32{}, b.clk[from].base.v...)}
	var last *clocks
	for t := from; t < from+n; t++ {
		if in != nil && !in(t) {
			continue
		}
		if c := b.clk[t].base; c != last {
			for i, x := range c.v {
				next.v[i] = max(next.v[i], x)
			}
			last = c
		}
	}
	for t := from; t < from+n; t++ {
		if in == nil || in(t) {
			next.v[b.id*b.threads+t] = b.clk[t].own
		}
	}
	for t := from; t < from+n; t++ {
		if in == nil || in(t) {
			b.clk[t].base = next
			b.clk[t].own++
		}
	}
}

// joinLanes orders the lanes of a warp, as bar.warp.sync does.
func (w *warp) joinLanes(m uint32) {
	if w.b.clk == nil {
		return
	}
	w.b.joinThreads(w.first, min(32, len(w.b.clk)-w.first), func(t int) bool { return m>>(t-w.first)&1 != 0 })
}

// release32 makes what the lanes of m did ready for their next atomic to pass on.
func (w *warp) release32(m uint32) {
	if w.b.clk == nil {
		return
	}
	all(m, func(l int) {
		c := &w.b.clk[w.first+l]
		c.rel = w.full(w.first + l)
		c.own++
	})
}

// acquire takes over what the lanes' atomics have heard.
func (w *warp) acquire(m uint32) {
	if w.b.clk == nil {
		return
	}
	all(m, func(l int) {
		c := &w.b.clk[w.first+l]
		if c.heard != nil {
			c.base, c.heard = c.base.join(c.heard), nil
		}
	})
}

// sync is an atomic's part in the order: it passes on what its thread has released and hears what others did.
func (w *warp) sync(addr uint64, l int, acquire bool) {
	if w.b.clk == nil {
		return
	}
	c, r := &w.b.clk[w.first+l], w.b.run
	if s := r.syncs[addr]; s != nil {
		if c.heard == nil {
			c.heard = s
		} else {
			c.heard = c.heard.join(s)
		}
	}
	if c.rel != nil {
		if s := r.syncs[addr]; s != nil {
			r.syncs[addr] = s.join(c.rel)
		} else {
			r.syncs[addr] = c.rel
		}
	}
	if acquire {
		w.acquire(1 << l)
	}
}

// seen notes an access of lane l to n bytes at off and traps when nothing orders it with one before.
func (w *warp) seen(words []shadow, off, l int, write, strong bool, n int) {
	if words == nil {
		return
	}
	t := w.first + l
	id := int32(w.b.id*w.b.threads + t)
	c := &w.b.clk[t]
	before := func(e epoch) bool { return e.thread == id || e.clk <= c.base.v[e.thread] }
	for i := off / 4; i <= (off+n-1)/4; i++ {
		s := &words[i]
		if s.write.clk != 0 && !before(s.write) && !(strong && s.strong) {
			w.race(l, s.write.thread, write, true)
		}
		if !write {
			if k := len(s.reads); k > 0 && s.reads[k-1].thread == id {
				s.reads[k-1].clk, s.reads[k-1].strong = c.own, strong && s.reads[k-1].strong
			} else {
				s.reads = append(s.reads, readEpoch{epoch{id, c.own}, strong})
			}
			continue
		}
		for _, e := range s.reads {
			if !before(e.epoch) && !(strong && e.strong) {
				w.race(l, e.thread, true, false)
			}
		}
		s.reads = s.reads[:0]
		s.write, s.strong = epoch{id, c.own}, strong
	}
}

func (w *warp) race(l int, other int32, write, otherWrite bool) {
	w.at = l
	name := map[bool]string{true: "write", false: "read"}
	n := int32(w.b.threads)
	w.trap("race", "nothing orders this %s with the %s of thread %d.%d", name[write], name[otherWrite], other/n, other%n)
}
