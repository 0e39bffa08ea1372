package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/cuda"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ref"
)

const (
	guardWords = 1024 // on each side of every buffer
	whereWords = 16   // a slot, as in golden.h
	doneMagic  = 0x600DD00D
	launches   = 3 // tries to reach every SM
)

type canary struct{ slot, thread, step, mask uint32 }

var noCanary = canary{slot: 0xFFFFFFFF}

// A layout is a kernel's buffers on the device, each between two guard bands.
type layout struct {
	t            *tester
	k            kernels.Kernel
	f            *cuda.Function
	slots, n     int // SM numbers there may be; words a block
	shared       int // dynamic shared memory that lets one block fit on an SM
	out, in      buffer
	claim, where buffer
}

type buffer struct {
	at    uint64 // of the guard before it
	words int
}

func (b buffer) data() uint64 { return b.at + 4*guardWords }

// layout makes the buffers. nil without an error: a block cannot be given an SM of its own.
func (t *tester) layout(k kernels.Kernel, f *cuda.Function) (*layout, error) {
	r, err := f.Resources()
	if err != nil {
		return nil, err
	}
	// %smid is below %nsmid, which may be above the number of SMs where some are switched off.
	l := &layout{t: t, k: k, f: f, slots: 2 * t.gpu.SMs, n: k.Words * t.size.Threads, shared: t.optIn - r.SharedBytes}
	if k.L1 {
		l.shared = t.optIn/2 + 1<<10 // a second block still does not fit, and the L1 keeps its half
	}
	if err := f.SetShared(l.shared); err != nil {
		return nil, err
	}
	blocks, err := f.BlocksPerSM(t.size.Threads, l.shared)
	if err != nil || blocks != 1 {
		return nil, err
	}
	for _, b := range []struct {
		b *buffer
		n int
	}{{&l.out, l.slots * (l.n + k.Behind(t.size.Threads))}, {&l.in, l.slots * l.n}, {&l.claim, l.slots + 1}, {&l.where, l.slots * whereWords}} {
		b.b.words = b.n
		if b.b.at, err = t.dev.Alloc(4 * (b.n + 2*guardWords)); err != nil {
			return nil, errors.Join(err, l.free())
		}
		if err := t.dev.Write(b.b.at, guard(b.b.at)); err != nil {
			return nil, err
		}
		if err := t.dev.Write(b.b.data()+uint64(4*b.n), guard(^b.b.at)); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// guard is the pattern of a guard band.
func guard(key uint64) []uint32 {
	g := make([]uint32, guardWords)
	for i := range g {
		g[i] = ref.Mix(uint32(key>>12), uint32(i), 0x6A5D)
	}
	return g
}

// bytes is how much device memory the buffers take.
func (l *layout) bytes() int {
	n := 0
	for _, b := range []buffer{l.out, l.in, l.claim, l.where} {
		n += 4 * (b.words + 2*guardWords)
	}
	return n
}

func (l *layout) free() error {
	for _, b := range []buffer{l.out, l.in, l.claim, l.where} {
		if b.at == 0 {
			continue // there was no room for it
		}
		if err := l.t.dev.Free(b.at); err != nil {
			return err
		}
	}
	return nil
}

// A blockOut is what one block stored, without the key.
type blockOut struct {
	slot, end int // the SM it began on, and ended on
	words     []uint32
	exposure  golden.Exposure
}

// An outcome is all that one run, of one launch or more, has left.
type outcome struct {
	launch uint32
	blocks []blockOut
	inputs bool   // they are what they were
	fault  string // guard bands or tables that are not what they should be
}

// cover runs a kernel until every SM has had a block, or launches are spent.
func (t *tester) cover(l *layout, seed, steps int, c canary) (*outcome, error) {
	t.launches++
	o := &outcome{launch: t.launches}
	input, poison := make([]uint32, l.slots*l.n), make([]uint32, l.slots*l.n)
	for i := range l.n {
		w := ref.Input(uint64(seed), i)
		for s := range l.slots {
			input[s*l.n+i] = w ^ ref.Mix(uint32(s), uint32(i), o.launch)
			poison[s*l.n+i] = 0xDEADBEEF + uint32(i)
		}
	}
	for _, w := range []struct {
		b buffer
		v []uint32
	}{{l.out, poison}, {l.in, input}, {l.claim, make([]uint32, l.slots+1)}, {l.where, make([]uint32, l.slots*whereWords)}} {
		if err := t.dev.Write(w.b.data(), w.v); err != nil {
			return nil, err
		}
	}
	for range launches {
		if err := t.stopped(); err != nil {
			return nil, fmt.Errorf("stopped: %w", err)
		}
		began := time.Now()
		err := l.f.Launch(2*t.gpu.SMs, t.size.Threads, l.shared, l.out.data(), l.in.data(), l.claim.data(), l.where.data(),
			uint32(l.slots), uint32(t.gpu.SMs), uint32(steps), o.launch, c.slot, c.thread, c.step, c.mask)
		if err != nil {
			return nil, err
		}
		if err := t.dev.Sync(); err != nil {
			return nil, err
		}
		t.longest = max(t.longest, time.Since(began))
		if err := l.collect(o); err != nil {
			return nil, err
		}
		if len(o.blocks) >= t.gpu.SMs {
			break
		}
	}
	for _, b := range o.blocks {
		t.exposed = t.exposed.Plus(b.exposure)
	}
	return o, l.check(o, input)
}

// collect reads what the blocks that have finished left.
func (l *layout) collect(o *outcome) error {
	where := make([]uint32, l.where.words)
	if err := l.t.dev.Read(l.where.data(), where); err != nil {
		return err
	}
	out := make([]uint32, l.slots*l.n) // without what lies behind it
	if err := l.t.dev.Read(l.out.data(), out); err != nil {
		return err
	}
	o.blocks = o.blocks[:0]
	for s := range l.slots {
		w := where[s*whereWords:][:whereWords]
		if w[3] != doneMagic {
			continue
		}
		if int(w[0]) != s {
			o.fault = fmt.Sprintf("slot %d says that it is SM %d's", s, w[0])
			continue
		}
		words := out[s*l.n:][:l.n]
		golden.Unkey(words, uint32(s), o.launch)
		o.blocks = append(o.blocks, blockOut{s, int(w[1]), words, l.t.exposure(w)})
	}
	return nil
}

// exposure reads the clocks that a block has stored at both ends in its words of where. Those of two SMs have nothing to do
// with each other.
func (t *tester) exposure(w []uint32) golden.Exposure {
	if w[0] != w[1] {
		return golden.Exposure{}
	}
	long := func(i int) uint64 { return uint64(w[i+1])<<32 | uint64(w[i]) }
	return golden.Expose(long(6)-long(4), long(10)-long(8), t.gpu.SMs, t.gpu.MaxMHz)
}

// read copies one block's words again.
func (l *layout) read(slot int, launch uint32) ([]uint32, error) {
	w := make([]uint32, l.n)
	if err := l.t.dev.Read(l.out.data()+uint64(4*slot*l.n), w); err != nil {
		return nil, err
	}
	golden.Unkey(w, uint32(slot), launch)
	return w, nil
}

// check looks at what no kernel should have touched.
func (l *layout) check(o *outcome, input []uint32) error {
	now := make([]uint32, len(input))
	if err := l.t.dev.Read(l.in.data(), now); err != nil {
		return err
	}
	o.inputs = equal(now, input)
	if !o.inputs {
		o.fault = "the inputs were changed while the kernel ran"
	}
	for _, b := range []buffer{l.out, l.in, l.claim, l.where} {
		for _, g := range []struct {
			at   uint64
			want []uint32
		}{{b.at, guard(b.at)}, {b.data() + uint64(4*b.words), guard(^b.at)}} {
			got := make([]uint32, guardWords)
			if err := l.t.dev.Read(g.at, got); err != nil {
				return err
			}
			if !equal(got, g.want) {
				o.fault = "a guard band was overwritten"
			}
		}
	}
	return nil
}

func equal(a, b []uint32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}
