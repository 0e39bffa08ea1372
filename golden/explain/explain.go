// Package explain says which single stuck bit would have made a GPU compute what it did.
//
// A bisection names the first step whose result is wrong, its operands and the lane. The step may be several instructions,
// and it turns and mixes what they give; so the bit that differs in the state is not yet the bit that is broken. Here the
// kernel runs on the PTX machine, up to that step, once with each bit of each unit in question stuck at 0 and at 1, in the
// lanes that were wrong. What gives every word of the block as the GPU did explains it. That nothing does is an answer as
// well: the fault is no single stuck bit, or not in a unit that the machine can break.
//
// It is pure but for the time it takes, which its context bounds.
package explain

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ptxvm"
	"github.com/assay-gpu/assay/golden/ref"
)

// maxSteps bounds how far a kernel is run. A stuck bit shows within a few steps, for the operands keep changing.
const maxSteps = 64

// A Question is a wrong block: the words of all its threads after the first wrong step.
type Question struct {
	Kernel     string
	Size       golden.Size
	Seed       int
	Steps      int // that were run; the last is the first whose result is wrong
	Capability int // 10 · major + minor
	Got        []uint32
}

// units are those that a kernel's probe may have used, the one that it tests first.
func units(k kernels.Kernel) []string {
	first := map[string][]string{
		"k01_imad": {"imad"}, "k02_lop3": {"lop3"}, "k03_mixed": {"alu", "imad", "shift", "lop3"}, "k04_ffma": {"fma32"}, "k05_dfma": {"fma64"},
		"k06_hfma2": {"fma16"}, "k06b_bfma2": {"fma16"}, "k07_divsqrt": {"mufu", "fma32", "fma64"}, "k09_cvt": {"cvt"}, "k10_shuffle": {"shuffle", "predicate"},
		"k11_smem": {"lsu_data"}, "k13_l1": {"lsu_data"}, "k16_hbm": {"lsu_data"}, "k17_atomic": {"atomic"},
		"k18_mma_f16": {"tensor16"}, "k18b_mma_bf16": {"tensor16"}, "k18i_mma_s8": {"tensor_int8"},
	}[k.ID]
	for _, u := range []string{"imad", "alu", "lop3", "shift"} {
		if !slices.Contains(first, u) {
			first = append(first, u)
		}
	}
	return first
}

// Explain tries one stuck bit after the other and gives the first that explains every word. nil: none does, or the step is
// too far from the start.
func Explain(ctx context.Context, q Question) (*golden.Stuck, error) {
	k, ok := kernels.Lookup(q.Kernel)
	if !ok {
		return nil, fmt.Errorf("no kernel %q", q.Kernel)
	}
	if q.Steps < 1 || q.Steps > maxSteps {
		return nil, nil
	}
	want := ref.Block(k.ID, uint64(q.Seed), q.Size.Threads, q.Steps)
	if len(want) != len(q.Got) {
		return nil, fmt.Errorf("%s: %d words, want %d", k.ID, len(q.Got), len(want))
	}
	part, lanes, ok := place(want, q.Got, q.Size.Threads)
	if !ok {
		return nil, nil // in several partitions: not one pipe
	}
	m, err := ptxvm.Parse(k.Source())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.ID, err)
	}
	e := m.Entries[k.ID]
	_, clean, err := run(e, k, q, 1<<30)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.ID, err)
	}
	budget := 2*clean + 1<<10 // a stuck counter must not run on for ever
	for _, unit := range units(k) {
		for _, lane := range candidates(lanes) {
			for bit := range 32 {
				for _, at := range []int{0, 1} {
					if err := context.Cause(ctx); err != nil {
						return nil, err
					}
					s := golden.Stuck{Unit: unit, Lane: lane, Bit: bit, At: at}
					f, err := fault(part, s)
					if err != nil {
						return nil, err
					}
					if got, _, err := run(e, k, q, budget, f); err == nil && slices.Equal(got, q.Got) {
						return &s, nil
					}
				}
			}
		}
	}
	return nil, nil
}

// place gives the partition that all wrong threads are in, and their lanes.
func place(want, got []uint32, threads int) (part int, lanes uint32, ok bool) {
	part = -1
	for i := range want {
		if want[i] == got[i] {
			continue
		}
		p := i % threads / 32 % golden.Partitions
		if part >= 0 && p != part {
			return 0, 0, false
		}
		part, lanes = p, lanes|1<<(i%threads%32)
	}
	return part, lanes, part >= 0
}

// candidates are the places in a warp that a fault may be in, narrowest first: one lane, four that are neighbours, all.
func candidates(lanes uint32) []string {
	var out []string
	for l := range 32 {
		if lanes == 1<<l {
			out = append(out, fmt.Sprint(l))
		}
	}
	for q := range 8 {
		if lanes&^(0xF<<(4*q)) == 0 {
			out = append(out, fmt.Sprintf("quad:%d", q))
		}
	}
	return append(out, "all")
}

// fault is the stuck bit as a line of a fault file.
func fault(part int, s golden.Stuck) (ptxvm.Fault, error) {
	lane, do := fmt.Sprintf("%q", s.Lane), fmt.Sprintf(`{"or":"%08x"}`, uint32(1)<<s.Bit)
	if s.Lane[0] >= '0' && s.Lane[0] <= '9' {
		lane = s.Lane
	}
	if s.At == 0 {
		do = fmt.Sprintf(`{"and":"%08x"}`, ^(uint32(1) << s.Bit))
	}
	line := fmt.Sprintf(`{"v":1,"id":"s","class":"stuck","where":{"sm":0,"part":%d,"unit":%q,"lane":%s},"when":{"p":1},"do":%s,"seed":1}`, part, s.Unit, lane, do)
	fs, err := ptxvm.ParseFaults([]byte(line))
	if err != nil {
		return ptxvm.Fault{}, err
	}
	return fs[0], nil
}

// run gives what the kernel stores, without the key, on a machine of one SM with these faults, and how many warp
// instructions that took.
func run(e *ptxvm.Entry, k kernels.Kernel, q Question, budget uint64, faults ...ptxvm.Fault) ([]uint32, uint64, error) {
	d := ptxvm.NewDevice(ptxvm.Config{SMs: 1, Capability: q.Capability, SharedSM: 64 << 10, Budget: budget, Faults: faults})
	if len(d.NotModelled) > 0 {
		return nil, 0, errors.New("not modelled")
	}
	n := k.Words * q.Size.Threads
	in := make([]uint32, n)
	for i := range in {
		in[i] = ref.Input(uint64(q.Seed), i) ^ ref.Mix(0, uint32(i), 1)
	}
	var params []byte
	var addrs []uint64
	for _, w := range [][]uint32{make([]uint32, n+k.Behind(q.Size.Threads)), in, make([]uint32, 2), make([]uint32, 16)} {
		a := d.Alloc(4 * len(w))
		if err := d.Write(a, bytesOf(w)); err != nil {
			return nil, 0, err
		}
		addrs, params = append(addrs, a), binary.LittleEndian.AppendUint64(params, a)
	}
	params = append(params, bytesOf([]uint32{1, 1, uint32(q.Steps), 1, ^uint32(0), 0, 0, 0})...)
	if err := d.Launch(e, 1, q.Size.Threads, 48<<10, params); err != nil {
		return nil, 0, err
	}
	out := make([]byte, 4*n)
	if err := d.Read(addrs[0], out); err != nil {
		return nil, 0, err
	}
	words := make([]uint32, n)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(out[4*i:])
	}
	golden.Unkey(words, 0, 1)
	warps, _ := d.Instructions()
	return words, warps, nil
}

func bytesOf(w []uint32) []byte {
	b := make([]byte, 4*len(w))
	for i, x := range w {
		binary.LittleEndian.PutUint32(b[4*i:], x)
	}
	return b
}
