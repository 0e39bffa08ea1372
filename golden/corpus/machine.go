package corpus

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/ptxvm"
	"github.com/assay-gpu/assay/golden/ref"
)

// A canary is a planted error: one word of one thread struck at one step.
type canary struct{ slot, thread, step, mask uint32 }

var noCanary = canary{slot: 0xFFFFFFFF}

// budget is how many warp instructions a run may take: a hundred times what any program of the grammar does.
const budget = 1 << 26

// run runs an entry as the worker does, one block an SM, and gives each SM's words, without the key; nil for an SM that no
// block claimed.
func run(cfg ptxvm.Config, e *ptxvm.Entry, seed uint64, threads, steps int, c canary) ([][]uint32, error) {
	cfg.SharedSM, cfg.Budget = 16<<10, budget
	d := ptxvm.NewDevice(cfg)
	slots, n, launch := cfg.SMs, Words*threads, uint32(7)
	in, poison := make([]uint32, slots*n), make([]uint32, slots*n)
	for i := range n {
		w := ref.Input(seed, i)
		for s := range slots {
			in[s*n+i] = w ^ ref.Mix(uint32(s), uint32(i), launch)
			poison[s*n+i] = 0xDEADBEEF + uint32(i)
		}
	}
	var addrs []uint64
	for _, w := range [][]uint32{poison, in, make([]uint32, slots+1), make([]uint32, slots*16)} {
		a := d.Alloc(4 * len(w))
		if err := d.Write(a, littleEndian(w)); err != nil {
			return nil, err
		}
		addrs = append(addrs, a)
	}
	var params []byte
	for _, a := range addrs {
		params = binary.LittleEndian.AppendUint64(params, a)
	}
	params = append(params, littleEndian([]uint32{uint32(slots), uint32(slots), uint32(steps), launch, c.slot, c.thread, c.step, c.mask})...)
	if err := d.Launch(e, 2*slots, threads, 10<<10, params); err != nil {
		return nil, err
	}
	out, where := make([]byte, 4*slots*n), make([]byte, 4*slots*16)
	if err := errors.Join(d.Read(addrs[0], out), d.Read(addrs[3], where)); err != nil {
		return nil, err
	}
	res := make([][]uint32, slots)
	for s := range slots {
		if binary.LittleEndian.Uint32(where[4*(16*s+3):]) != 0x600DD00D {
			continue
		}
		w := make([]uint32, n)
		for i := range w {
			w[i] = binary.LittleEndian.Uint32(out[4*(s*n+i):])
		}
		golden.Unkey(w, uint32(s), launch)
		res[s] = w
	}
	return res, nil
}

func littleEndian(w []uint32) []byte {
	b := make([]byte, 0, 4*len(w))
	for _, x := range w {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// plain runs an entry once on one SM of the mildest machine.
func plainRun(e *ptxvm.Entry, capability int, seed uint64, threads, steps int) ([]uint32, error) {
	out, err := run(ptxvm.Config{SMs: 1, Capability: capability}, e, seed, threads, steps, noCanary)
	if err != nil {
		return nil, err
	}
	if out[0] == nil {
		return nil, fmt.Errorf("%s: no block finished", e.Name)
	}
	return out[0], nil
}
