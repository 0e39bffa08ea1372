package ptxvm

import (
	"fmt"
	"strings"
)

// A run is one launch.
type run struct {
	dev     *Device
	entry   *Entry
	grid    int
	threads int
	dynamic int
	params  []byte
	pending []int // blocks not yet begun
	live    int
	budget  uint64
	syncs   map[uint64]*clocks // what releases at an address carry
}

// A block is a thread block on its SM.
type block struct {
	run     *run
	id      int
	sm      *sm
	moved   int // the SM it shows instead, or -1
	threads int
	dynamic int
	warps   []*warp
	shared  []byte
	sundef  []bool
	swords  []shadow
	waiting map[int]int // for each barrier, how many threads wait
	live    int
	clk     []threadClock
}

func (b *block) showSM() int {
	if b.moved >= 0 {
		return b.moved
	}
	return b.sm.id
}

// Launch runs a kernel to its end. The error is a *Trap, or says what was wrong with the call.
func (d *Device) Launch(e *Entry, grid, threads, dynamic int, params []byte) (err error) {
	switch {
	case grid < 1 || grid > 1<<20:
		return fmt.Errorf("launch %s: %d blocks", e.Name, grid)
	case threads < 1 || threads > 1024 || e.MaxThreads > 0 && threads > e.MaxThreads:
		return fmt.Errorf("launch %s: %d threads a block", e.Name, threads)
	case len(params) != e.ParamBytes:
		return fmt.Errorf("launch %s: %d bytes of parameters, want %d", e.Name, len(params), e.ParamBytes)
	case e.Shared+dynamic > d.cfg.SharedSM:
		return fmt.Errorf("launch %s: %d bytes of shared memory, an SM has %d", e.Name, e.Shared+dynamic, d.cfg.SharedSM)
	}
	r := &run{dev: d, entry: e, grid: grid, threads: threads, dynamic: dynamic, params: params, budget: d.cfg.Budget}
	if d.cfg.Races {
		r.syncs = map[uint64]*clocks{}
		for _, a := range d.allocs {
			a.words = make([]shadow, (len(a.data)+3)/4)
		}
	}
	for i := range grid {
		r.pending = append(r.pending, i)
	}
	if d.cfg.Hostile {
		r.pending = shuffled(&d.rng, r.pending)
	}
	defer func() {
		for _, s := range d.sms {
			s.blocks, s.shared, s.threads = nil, 0, 0
			clear(s.l1)
		}
		switch t := recover().(type) {
		case nil:
		case *Trap:
			t.Entry = e.Name
			err = t
		default:
			panic(t)
		}
	}()
	r.loop()
	return nil
}

// Occupancy is how many blocks of a kernel fit on an SM.
func (d *Device) Occupancy(e *Entry, threads, dynamic int) int {
	n := d.cfg.ThreadsSM / max(threads, 1)
	if s := e.Shared + dynamic; s > 0 {
		n = min(n, d.cfg.SharedSM/s)
	}
	return n
}

// place starts pending blocks where there is room: on each SM one before any gets a second.
func (r *run) place() {
	for len(r.pending) > 0 {
		var best *sm
		order := r.dev.sms
		if r.dev.cfg.Hostile {
			order = shuffled(&r.dev.rng, order)
		}
		for _, s := range order {
			if len(s.blocks) >= r.dev.Occupancy(r.entry, r.threads, r.dynamic) {
				continue
			}
			if best == nil || len(s.blocks) < len(best.blocks) {
				best = s
			}
		}
		if best == nil {
			return
		}
		id := r.pending[0]
		r.pending = r.pending[1:]
		best.blocks = append(best.blocks, r.newBlock(id, best))
		r.live++
	}
}

func (r *run) newBlock(id int, s *sm) *block {
	n := max(r.entry.Shared, r.entry.base) + r.dynamic
	b := &block{run: r, id: id, sm: s, moved: -1, threads: r.threads, dynamic: r.dynamic, shared: make([]byte, n), sundef: make([]bool, n),
		live: r.threads, waiting: map[int]int{}}
	for i := range b.sundef {
		b.sundef[i] = true
	}
	if r.dev.cfg.Races {
		b.swords = make([]shadow, (n+3)/4)
		b.clk = newClocks(r, b)
	}
	for first := 0; first < r.threads; first += 32 {
		lanes := min(32, r.threads-first)
		w := &warp{b: b, first: first, r: make([]lane, r.entry.regs), undef: make([]uint32, r.entry.regs)}
		for i := range w.undef {
			w.undef[i] = ^uint32(0)
		}
		w.groups = []group{{mask: uint32(1<<lanes - 1)}}
		b.warps = append(b.warps, w)
	}
	return b
}

// loop gives every warp its turns until all blocks have ended.
func (r *run) loop() {
	d := r.dev
	for {
		r.place()
		if r.live == 0 {
			return
		}
		progress := false
		sms := d.sms
		if d.cfg.Hostile {
			sms = shuffled(&d.rng, sms)
		}
		before := d.warps
		for _, s := range sms {
			if r.turn(s) {
				progress = true
			}
		}
		d.now += (d.warps-before)/uint64(len(d.sms)) + 1
		if !progress && !r.wake() {
			panic(&Trap{Kind: "deadlock", Detail: r.stuck()})
		}
	}
}

// turn runs every warp of an SM for a while and takes away blocks that have ended.
func (r *run) turn(s *sm) bool {
	progress := false
	for _, b := range append([]*block{}, s.blocks...) {
		warps := b.warps
		if r.dev.cfg.Hostile {
			warps = shuffled(&r.dev.rng, warps)
			if r.dev.cfg.MoveSM && r.dev.rng.intN(4096) == 0 {
				b.moved = r.dev.rng.intN(r.dev.cfg.SMs)
			}
		}
		for _, w := range warps {
			slice := 512
			if r.dev.cfg.Hostile {
				slice = 1 + r.dev.rng.intN(48)
			}
			if w.turn(slice) {
				progress = true
			}
		}
		if b.live == 0 {
			for _, w := range b.warps {
				w.drain()
			}
			for i := range s.blocks {
				if s.blocks[i] == b {
					s.blocks = append(s.blocks[:i], s.blocks[i+1:]...)
					break
				}
			}
			r.live--
			progress = true
		}
	}
	return progress
}

// wake moves time to the first sleeper's end, if there is one.
func (r *run) wake() bool {
	first := uint64(0)
	for _, s := range r.dev.sms {
		for _, b := range s.blocks {
			for _, w := range b.warps {
				for _, g := range w.groups {
					if g.wait == waitSleep && (first == 0 || g.until < first) {
						first = g.until
					}
				}
			}
		}
	}
	if first == 0 {
		return false
	}
	r.dev.now = max(r.dev.now, first)
	return true
}

func (r *run) stuck() string {
	var out []string
	for _, s := range r.dev.sms {
		for _, b := range s.blocks {
			for _, w := range b.warps {
				for _, g := range w.groups {
					out = append(out, fmt.Sprintf("block %d warp %d lanes %08x at line %d", b.id, w.first/32, g.mask, r.entry.insts[g.pc].line))
				}
			}
		}
	}
	if len(out) > 4 {
		out = append(out[:4], fmt.Sprintf("and %d more", len(out)-4))
	}
	return "all wait: " + strings.Join(out, "; ")
}
