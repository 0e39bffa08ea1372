package ref

import "fmt"

// chain is a kernel whose threads do not talk to each other.
type chain struct {
	words int
	step  func(x []uint32, i uint32)
}

var chains = map[string]chain{
	"k01_imad":    {4, imad},
	"k02_lop3":    {4, lop3},
	"k03_mixed":   {4, mixed},
	"k03b_add64":  {8, sums},
	"k04_ffma":    {4, ffma},
	"k05_dfma":    {8, dfma},
	"k06_hfma2":   {4, hfma2},
	"k06b_bfma2":  {4, bfma2},
	"k07_divsqrt": {4, divsqrt},
	"k09_cvt":     {4, conversions},
	"k12_regfile": {44, registers},
	"k14_icache":  {4, straight},
	"k14c_const":  {4, constants},
	"k27_misc":    {4, misc},
	"k24_branch":  {4, branches},
}

// warpChain is a kernel whose step joins the 32 lanes of a warp, or all threads of the block: run is then called for warp 0.
type warpChain struct {
	words int
	run   func(b block, warp, steps int)
}

var warpChains = map[string]warpChain{
	"k10_shuffle":    {4, runWarps(shuffles)},
	"k10b_redux":     {4, runWarps(reductions)},
	"k15_l2":         {8, runMemory(slices)},
	"k18h_mma_f16k8": {10, runMMA(mmaF16k8)},
	"k18t_mma_tf32":  {10, runMMA(mmaTF32)},
	"k18j_mma_s8k16": {10, runMMA(mmaInts(intFormat{bits: 8, rows: 8, unsignedB: true}))},
	"k18q_mma_s4":    {10, runMMA(mmaInts(intFormat{bits: 4, rows: 16}))},
	"k18x_mma_b1":    {10, runMMA(mmaInts(intFormat{bits: 1, rows: 16}))},
	"k18d_dmma":      {8, runDouble},
	"k19_mma_fp8":    {10, runMMA(mmaFP8)},
	"k26_uniform":    {4, runThreads(uniform)},
	"k11_smem":       {4, runBlock(shared)},
	"k13_l1":         {8, runMemory(cached)},
	"k16_hbm":        {8, runMemory(far)},
	"k17_atomic":     {4, runBlock(atomics)},
	"k18_mma_f16":    {10, runMMA(mmaF16)},
	"k18b_mma_bf16":  {10, runMMA(mmaBF16)},
	"k18i_mma_s8":    {10, runMMA(mmaInts(intFormat{bits: 8, rows: 16}))},
}

// Block gives the state of one block after steps steps, word-major, without the key: the golden of every SM.
func Block(kernel string, seed uint64, threads, steps int) []uint32 {
	if c, ok := chains[kernel]; ok {
		b := newBlock(seed, c.words, threads)
		x := make([]uint32, c.words)
		for t := range threads {
			b.thread(t, x)
			for i := range steps {
				c.step(x, uint32(i))
			}
			b.store(t, x)
		}
		return b.w
	}
	c, ok := warpChains[kernel]
	if !ok {
		panic(fmt.Sprintf("ref: no kernel %q", kernel))
	}
	if threads%32 != 0 {
		panic(fmt.Sprintf("ref: %s with %d threads: want whole warps", kernel, threads))
	}
	b := newBlock(seed, c.words, threads)
	for w := range threads / 32 {
		c.run(b, w, steps)
	}
	return b.w
}

func runMMA(step func(x *[10][32]uint32, i uint32, tiles func(*tile))) func(b block, warp, steps int) {
	return func(b block, warp, steps int) {
		var x [10][32]uint32
		for w := range x {
			copy(x[w][:], b.w[w*b.threads+warp*32:])
		}
		for i := range steps {
			step(&x, uint32(i), nil)
		}
		for w := range x {
			copy(b.w[w*b.threads+warp*32:][:32], x[w][:])
		}
	}
}

// runThreads is for steps of one thread that need what the steps before have left beside its state.
func runThreads(run func(x []uint32, steps int)) func(b block, warp, steps int) {
	return func(b block, warp, steps int) {
		x := make([]uint32, len(b.w)/b.threads)
		for t := warp * 32; t < warp*32+32; t++ {
			b.thread(t, x)
			run(x, steps)
			b.store(t, x)
		}
	}
}
