// Package kernels holds the golden kernels: CUDA C++ with inline PTX, the PTX that stock clang makes of it, and what each
// one tests, by which rule it is exact, and what it cannot see.
//
// Every kernel is a Feistel chain: the state's halves are L and R, and a step is (L, R) ← (R, rotl(L xor U(R, step))) with U
// the unit under test. The chain is a bijection whatever U gives, so one wrong bit of one step never heals, and U's operands
// keep changing. All of the state is stored, and the host compares every word.
package kernels

import (
	"embed"
	"fmt"
)

//go:generate make -C ../.. golden-generate

//go:embed *.ptx *.cu golden.h
var files embed.FS

// A Kernel is what is known of one kernel.
type Kernel struct {
	ID     string // also its entry in the PTX, and the name of its files
	Rule   string // its number in the suite, as K1
	Unit   string // the unit under test
	Does   string // one step, in words
	Exact  string // why the result is the same on every GPU
	Blind  string // what it cannot see
	Target string // the PTX target it is compiled for, as sm_70
	PTX    string // the lowest PTX version, as 6.3
	MinCC  int    // the lowest compute capability that runs it, 10 · major + minor
	MaxCC  int    // likewise the highest, where a later assembler makes other instructions of it; 0 for none
	Words  int    // 32-bit words of state a thread
	Probe  string // the PTX instruction that U is, for the gate
	SASS   []Opcode
	Steps  int  // of a full run, at 1,024 threads a block
	Near   int  // words a thread uses behind the output
	Ring   int  // likewise, in each chunk of a ring of as many chunks as a sixteenth of the threads
	L1     bool // it tests the L1, which must not give its room to shared memory

	Code  string // its PTX, when it is not one of ours
	Seeds int    // that have goldens, when they are not those of the suite
}

// Skip says why a kernel does not run on a compute capability; "" when it does.
func (k Kernel) Skip(capability int) string {
	switch {
	case capability < k.MinCC:
		return fmt.Sprintf("needs compute capability %d.%d", k.MinCC/10, k.MinCC%10)
	case k.MaxCC > 0 && capability > k.MaxCC:
		return fmt.Sprintf("beyond compute capability %d.%d its instruction is made of others", k.MaxCC/10, k.MaxCC%10)
	}
	return ""
}

// Behind is how much memory a block uses behind the outputs of all slots, in 32-bit words.
func (k Kernel) Behind(threads int) int { return k.Near*threads + k.Ring*threads*(threads/16) }

// An Opcode is what a step must execute once assembled: the machine instruction and how often, for targets from From to To.
type Opcode struct {
	From, To int // compute capabilities
	Name     string
	Count    int
}

// All gives the kernels in the suite's order.
func All() []Kernel { return append([]Kernel{}, all...) }

// Lookup gives a kernel by its ID or its number.
func Lookup(name string) (Kernel, bool) {
	for _, k := range all {
		if k.ID == name || k.Rule == name {
			return k, true
		}
	}
	return Kernel{}, false
}

// Source is the kernel's PTX.
func (k Kernel) Source() string {
	if k.Code != "" {
		return k.Code
	}
	b, err := files.ReadFile(k.ID + ".ptx")
	if err != nil {
		panic(fmt.Sprintf("kernels: %v", err)) // embedded above; a test holds the two together
	}
	return string(b)
}

// CUDA is a file of the CUDA C++ that the PTX was compiled from: a kernel's, as k01_imad.cu, or golden.h.
func CUDA(file string) []byte {
	b, err := files.ReadFile(file)
	if err != nil {
		panic(fmt.Sprintf("kernels: %v", err)) // embedded above; a test holds the two together
	}
	return b
}

// CopySource is the PTX with which copy tests make patterns on the GPU, entry k21_fill, and compare them, entry k21_check.
func CopySource() string {
	b, err := files.ReadFile("k21_copy.ptx")
	if err != nil {
		panic(fmt.Sprintf("kernels: %v", err)) // embedded above
	}
	return string(b)
}

const feistel = "a Feistel step is a bijection of the state whatever the unit gives; "

var all = []Kernel{
	{
		ID: "k01_imad", Rule: "K1", Unit: "integer multiply-add (IMAD)", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 4096,
		Does:  "p = A·B + (C0:B) by mad.wide.u32; both halves of p are added to the other half of the state, rotated by 7 and 13",
		Exact: feistel + "integers", Probe: "mad.wide.u32",
		SASS:  []Opcode{{70, 90, "IMAD.WIDE.U32", 1}},
		Blind: "the signed and the high-half forms of the multiplier",
	},
	{
		ID: "k02_lop3", Rule: "K2", Unit: "logic (LOP3)", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 256,
		Does:  "all 256 tables of lop3.b32 on three words of the state, each result turned by one bit and added",
		Exact: feistel + "integers", Probe: "lop3.b32",
		SASS:  []Opcode{{70, 90, "LOP3.LUT", 513}}, // 257 of them put the results together
		Blind: "tables that the assembler computes another way: 0, 255 and copies",
	},
	{
		ID: "k03_mixed", Rule: "K3", Unit: "the rest of the integer unit", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 512,
		Does:  "dp4a, high products, prmt, brev, popc, clz, bfind, bfe, bfi, min, max, sad, shf, carries and 64-bit division",
		Exact: feistel + "integers", Probe: "dp4a.u32.u32",
		SASS:  []Opcode{{70, 90, "IDP.4A.U8.U8", 1}, {70, 90, "IDP.4A.S8.S8", 1}, {70, 90, "POPC", 1}, {70, 90, "BREV", 1}, {70, 90, "PRMT", 1}},
		Blind: "low bits of the reciprocal seed under the division, which its refinement heals",
	},
	{
		ID: "k03b_add64", Rule: "K3b", Unit: "64-bit addition, as of addresses (IADD3 and IMAD.X)", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 8, Steps: 2048,
		Does:  "two add.u64 of four 64-bit words of the state, at random and with carries that run from any bit to the top",
		Exact: feistel + "integers", Probe: "add.u64",
		SASS:  []Opcode{{70, 90, "IMAD.X", 2}},
		Blind: "the adder within the load-store unit, to which only whole addresses can be given",
	},
	{
		ID: "k04_ffma", Rule: "K4", Unit: "FP32 fused multiply-add (FFMA)", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 2048,
		Does:  "fma.rn.f32 three times on words of the state: exponents near one, wide apart, subnormal or large by the step; then sums, products, an addend near the product's opposite, subnormal factors or zeros by the step; then what that left unrounded",
		Exact: feistel + "IEEE 754 fusedMultiplyAdd, nearest even, subnormals kept", Probe: "fma.rn.f32",
		SASS:  []Opcode{{70, 90, "FFMA", 3}},
		Blind: "overflow, infinities, NaN, and the directed roundings",
	},
	{
		ID: "k05_dfma", Rule: "K5", Unit: "FP64 fused multiply-add (DFMA)", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 8, Steps: 1536,
		Does:  "as K4, with fma.rn.f64 on 64-bit words of the state",
		Exact: feistel + "IEEE 754 fusedMultiplyAdd, nearest even, subnormals kept", Probe: "fma.rn.f64",
		SASS:  []Opcode{{70, 90, "DFMA", 3}},
		Blind: "overflow, infinities, NaN, and the directed roundings",
	},
	{
		ID: "k06_hfma2", Rule: "K6", Unit: "FP16 fused multiply-add, packed (HFMA2)", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 4096,
		Does:  "fma.rn.f16x2 of three words of the state, exponents as in K4",
		Exact: feistel + "IEEE 754 fusedMultiplyAdd on binary16, nearest even, subnormals kept", Probe: "fma.rn.f16x2",
		SASS:  []Opcode{{70, 90, "HFMA2", 1}},
		Blind: "overflow, infinities, NaN, and saturation",
	},
	{
		ID: "k06b_bfma2", Rule: "K6b", Unit: "BF16 fused multiply-add, packed", Target: "sm_80", PTX: "7.0", MinCC: 80, Words: 4, Steps: 4096,
		Does:  "fma.rn.bf16x2 of three words of the state, exponents as in K4",
		Exact: feistel + "fusedMultiplyAdd on bfloat16, nearest even, subnormals kept", Probe: "fma.rn.bf16x2",
		SASS:  []Opcode{{80, 90, "HFMA2.BF16_V2", 1}},
		Blind: "overflow, infinities, NaN, and saturation",
	},
	{
		ID: "k07_divsqrt", Rule: "K7", Unit: "division and root, FP32 and FP64 (MUFU seeds)", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 256,
		Does:  "div.rn, rcp.rn and sqrt.rn of both widths; every word of every result is added",
		Exact: feistel + "IEEE 754 division and squareRoot, nearest even", Probe: "div.rn.f32",
		SASS:  []Opcode{{70, 90, "MUFU.RCP", 1}, {70, 90, "MUFU.RSQ", 1}, {70, 90, "MUFU.RCP64H", 1}, {70, 90, "MUFU.RSQ64H", 1}},
		Blind: "low bits of the seeds, which the refinement heals: a masked share by nature; subnormal results",
	},
	{
		ID: "k09_cvt", Rule: "K9", Unit: "conversions (F2F, F2I, I2F)", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 1024,
		Does:  "cvt between f16, f32, f64, 32- and 64-bit integers, in every integer rounding",
		Exact: feistel + "conversions are defined to the bit", Probe: "cvt.rn.f16.f32",
		SASS:  []Opcode{{70, 90, "F2I.TRUNC.NTZ", 1}},
		Blind: "FP8 and BF16 conversions, NaN, directed roundings between floats",
	},
	{
		ID: "k10_shuffle", Rule: "K10", Unit: "shuffle, vote, match", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 1024,
		Does:  "shfl.sync in its four modes and in segments, vote.sync.ballot, match.any.sync",
		Exact: feistel + "integers", Probe: "shfl.sync.idx.b32",
		SASS:  []Opcode{{70, 90, "SHFL.IDX", 1}, {70, 90, "SHFL.BFLY", 1}, {70, 90, "SHFL.UP", 1}, {70, 90, "SHFL.DOWN", 2}, {70, 90, "MATCH.ANY", 1}},
		Blind: "vote.all and any, redux",
	},
	{
		ID: "k10b_redux", Rule: "K10b", Unit: "reductions over a warp (REDUX)", Target: "sm_80", PTX: "7.0", MinCC: 80, Words: 4, Steps: 1024,
		Does:  "redux.sync add, xor, min, max, and, or of words of the state",
		Exact: feistel + "integers", Probe: "redux.sync.xor.b32",
		SASS:  []Opcode{{80, 90, "REDUX", 6}},
		Blind: "reductions over part of a warp",
	},
	{
		ID: "k11_smem", Rule: "K11", Unit: "shared memory", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 1024,
		Does:  "writes and reads in widths of 8 to 64 bits and strides of 1 to 32 banks, another thread reading; every 16 steps a march over all dynamic shared memory",
		Exact: feistel + "integers; the march adds the difference to what was written, which is zero", Probe: "ld.shared.u64",
		SASS:  []Opcode{{70, 75, "LDS.U.64", 1}, {80, 90, "LDS.64", 1}, {70, 90, "STS.64", 1}, {70, 90, "STS.U8", 4}, {70, 90, "STS.U16", 2}},
		Blind: "128-bit accesses, ldmatrix and stmatrix; the last bytes that static shared memory takes",
	},
	{
		ID: "k12_regfile", Rule: "K12", Unit: "register file, 1,024 threads of 64 registers", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 44, Steps: 256,
		Does:  "44 words a thread stay in registers; each is mixed with its neighbour and turned",
		Exact: feistel + "integers", Probe: "shf.l.wrap.b32",
		SASS:  []Opcode{{70, 90, "SHF.L.W.U32.HI", 44}},
		Blind: "a thread's registers from 64 on; some 20 of its 64, which hold addresses and counters; a register that is right whenever it is read soon",
	},
	{
		ID: "k13_l1", Rule: "K13", Unit: "L1 cache, tags and data", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 8, Steps: 1024, Near: 16, L1: true,
		Does:  "stores four words a thread through the L1 and reads them with ld.global.ca as other threads, in strides of 16 bytes, over 64 KiB",
		Exact: feistel + "integers; between two barriers each word has one writer", Probe: "ld.global.ca.u32",
		SASS:  []Opcode{{70, 90, "LDG.E", 3}, {70, 90, "LDG.E.64", 1}, {70, 90, "STG.E.128", 1}},
		Blind: "L1 lines beyond 64 KiB, and the L1 of a GPU that lets half of it be shared memory all the same; the texture path",
	},
	{
		ID: "k14_icache", Rule: "K14", Unit: "instruction fetch and caches", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 8,
		Does:  "4,352 pieces of straight code, each with a constant of its own: 136 KiB of machine code a step",
		Exact: feistel + "integers", Probe: "shf.l.wrap.b32",
		SASS:  []Opcode{{70, 90, "IMAD", 4352}, {70, 90, "SHF.L.W.U32.HI", 4352}},
		Blind: "a wrong instruction that does the same; caches beyond 136 KiB",
	},
	{
		ID: "k14c_const", Rule: "K14c", Unit: "constant cache", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 1024,
		Does:  "reads four words of a constant table of 16 KiB, three where each lane's state says and one that all share",
		Exact: feistel + "integers", Probe: "ld.const.u32",
		SASS:  []Opcode{{70, 70, "LDC", 4}, {75, 89, "LDC", 3}, {90, 90, "LDC", 4}},
		Blind: "48 KiB of the constant bank; constants as operands of other instructions",
	},
	{
		ID: "k15_l2", Rule: "K15", Unit: "crossbar and L2, read", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 8, Steps: 1024,
		Does:  "reads 32 bytes past the L1 that the host wrote for another SM's block, going round all of them; without the other's key they are the same words",
		Exact: feistel + "integers; nobody writes what is read", Probe: "ld.global.cg.u32",
		SASS:  []Opcode{{70, 90, "LDG.E.STRONG.GPU", 8}},
		Blind: "what one SM writes and another reads; the L2 beyond the inputs of all SMs, 8 MiB on an H100",
	},
	{
		ID: "k16_hbm", Rule: "K16", Unit: "path to memory, a slice of HBM", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 8, Steps: 1024, Ring: 8,
		Does:  "reads what another warp wrote a round of 2 MiB before, words and their complements, and overwrites it",
		Exact: feistel + "integers; between two barriers each word has one writer", Probe: "ld.global.cg.v4.u32",
		SASS:  []Opcode{{70, 90, "LDG.E.128", 2}, {70, 90, "STG.E.128", 2}},
		Blind: "all memory outside the slice: it is a test of the path, not of the cells; words of the last round, which are not read; reads on another SM than wrote; the L2 itself, where it holds more than a third of all rings",
	},
	{
		ID: "k17_atomic", Rule: "K17", Unit: "atomics in the L2", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 256,
		Does:  "atom.global add, xor, min, max, exch, and, cas and 64-bit add on words that one other thread owns, all results and all words read back",
		Exact: feistel + "each word is struck by one thread between two barriers: no order is left open", Probe: "atom.global.and.b32",
		SASS:  []Opcode{{70, 90, "ATOMG.E.AND.STRONG.GPU", 1}},
		Blind: "floating atomics, shared atomics, contention",
	},
	{
		ID: "k18_mma_f16", Rule: "K18", Unit: "tensor core, FP16 with FP32 accumulate (HMMA)", Target: "sm_80", PTX: "7.0", MinCC: 80, Words: 10, Steps: 512,
		Does:  "four m16n8k16 products accumulate on a fresh C; all bits of each D are absorbed",
		Exact: feistel + "every product and every sum is a multiple of u/2 below 2^24 u/2, so no accumulator of any generation drops a bit",
		Probe: "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
		SASS:  []Opcode{{80, 90, "HMMA.16816.F32", 4}},
		Blind: "rounding in the accumulator; on sm_90 the wgmma path, and on sm_100 tcgen05",
	},
	{
		ID: "k18b_mma_bf16", Rule: "K18b", Unit: "tensor core, BF16 with FP32 accumulate (HMMA)", Target: "sm_80", PTX: "7.0", MinCC: 80, Words: 10, Steps: 512,
		Does:  "as K18, with operands of 8 significant bits",
		Exact: feistel + "as K18", Probe: "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
		SASS:  []Opcode{{80, 90, "HMMA.16816.F32.BF16", 4}},
		Blind: "rounding in the accumulator; on sm_90 the wgmma path, and on sm_100 tcgen05",
	},
	{
		ID: "k18i_mma_s8", Rule: "K18i", Unit: "tensor core, INT8 with INT32 accumulate (IMMA)", Target: "sm_80", PTX: "7.0", MinCC: 80, Words: 10, Steps: 512,
		Does:  "four m16n8k32 products of the state's own bytes accumulate on words of the state; each D is absorbed",
		Exact: feistel + "integers modulo 2^32", Probe: "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
		SASS:  []Opcode{{80, 90, "IMMA.16832.S8.S8", 4}},
		Blind: "unsigned operands and saturation; on sm_90 the wgmma path",
	},
	{
		ID: "k18h_mma_f16k8", Rule: "K18h", Unit: "tensor core, FP16 with FP32 accumulate, in Turing's shape (HMMA)", Target: "sm_75", PTX: "6.5", MinCC: 75, Words: 10, Steps: 64,
		Does:  "as K18, in products of m16n8k8",
		Exact: feistel + "as K18", Probe: "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
		SASS:  []Opcode{{75, 90, "HMMA.1688.F32", 4}},
		Blind: "as K18",
	},
	{
		ID: "k18j_mma_s8k16", Rule: "K18j", Unit: "tensor core, INT8 by UINT8, in Turing's shape (IMMA)", Target: "sm_75", PTX: "6.5", MinCC: 75, Words: 10, Steps: 64,
		Does:  "four m8n8k16 products of the state's own bytes accumulate on words of the state; each D is absorbed",
		Exact: feistel + "integers modulo 2^32", Probe: "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32",
		SASS:  []Opcode{{75, 90, "IMMA.8816.S8.U8", 4}},
		Blind: "saturation",
	},
	{
		ID: "k18t_mma_tf32", Rule: "K18t", Unit: "tensor core, TF32 with FP32 accumulate (HMMA)", Target: "sm_80", PTX: "7.0", MinCC: 80, Words: 10, Steps: 64,
		Does:  "as K18, in products of m16n8k8 of TF32",
		Exact: feistel + "as K18", Probe: "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
		SASS:  []Opcode{{80, 90, "HMMA.1688.F32.TF32", 4}},
		Blind: "as K18; the bits of an operand that the core cuts off",
	},
	{
		ID: "k18d_dmma", Rule: "K18d", Unit: "tensor core, FP64 (DMMA)", Target: "sm_80", PTX: "7.0", MinCC: 80, Words: 8, Steps: 64,
		Does:  "four m8n8k4 products accumulate on a fresh C; all bits of each D are absorbed",
		Exact: feistel + "every product and every sum is a multiple of u/2 below 2^53 u/2, so nothing is rounded in whatever order", Probe: "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
		SASS:  []Opcode{{80, 89, "DMMA.884", 4}, {90, 90, "DMMA.8x8x4", 4}},
		Blind: "rounding, subnormals",
	},
	{
		ID: "k18q_mma_s4", Rule: "K18q", Unit: "tensor core, INT4 with INT32 accumulate (IMMA)", Target: "sm_80", PTX: "7.0", MinCC: 80, Words: 10, Steps: 64, MaxCC: 89,
		Does:  "four m16n8k64 products of the state's own bits accumulate on words of the state; each D is absorbed",
		Exact: feistel + "integers modulo 2^32", Probe: "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
		SASS:  []Opcode{{80, 89, "IMMA.16864.S4.S4", 4}},
		Blind: "unsigned operands and saturation",
	},
	{
		ID: "k18x_mma_b1", Rule: "K18x", Unit: "tensor core, single bits (BMMA)", Target: "sm_80", PTX: "7.1", MinCC: 80, Words: 10, Steps: 64,
		Does:  "four m16n8k256 products, AND and a count, of the state's own bits accumulate on words of the state; each D is absorbed",
		Exact: feistel + "integers modulo 2^32", Probe: "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc",
		SASS:  []Opcode{{80, 90, "BMMA.168256.AND.POPC", 4}},
		Blind: "the XOR form",
	},
	{
		ID: "k19_mma_fp8", Rule: "K19", Unit: "tensor core, FP8 with FP32 accumulate (QMMA)", Target: "sm_89", PTX: "8.4", MinCC: 89, Words: 10, Steps: 64, MaxCC: 89,
		Does:  "an m16n8k32 product of each pair of E4M3 and E5M2 on a fresh C; all bits of each D are absorbed",
		Exact: feistel + "every sum is an odd multiple of u/2 below 2^14 u/2, which the 14 bits that such a core keeps can hold", Probe: "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
		SASS:  []Opcode{{89, 89, "QMMA.16832.F32.E4M3.E4M3", 1}, {89, 89, "QMMA.16832.F32.E5M2.E4M3", 1}, {89, 89, "QMMA.16832.F32.E4M3.E5M2", 1}, {89, 89, "QMMA.16832.F32.E5M2.E5M2", 1}},
		Blind: "rounding in the accumulator; sums over several products; FP8 of Hopper, which only wgmma reaches",
	},
	{
		ID: "k24_branch", Rule: "K24", Unit: "branches and reconvergence", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 1024,
		Does:  "lanes part by bits of their own state, walk loops of different length and meet at warp barriers",
		Exact: feistel + "integers", Probe: "mad.lo.u32",
		SASS:  []Opcode{{70, 90, "BRA", 4}},
		Blind: "indirect branches, calls, named barriers",
	},
	{
		ID: "k26_uniform", Rule: "K26", Unit: "uniform datapath", Target: "sm_75", PTX: "6.3", MinCC: 75, Words: 4, Steps: 4096,
		Does:  "a chain of four words that depends on the step alone runs once for a warp: multiply, logic, shifts, counts, selections; each word goes into every lane",
		Exact: feistel + "integers", Probe: "brev.b32",
		SASS:  []Opcode{{75, 90, "UIMAD", 1}, {75, 90, "ULOP3.LUT", 6}, {75, 90, "USHF", 4}, {75, 90, "UBREV", 1}, {75, 90, "UPOPC", 1}},
		Blind: "the chain's operands follow the step and not the seed; the uniform loads of constants",
	},
	{
		ID: "k27_misc", Rule: "K27", Unit: "carries, predicates, minima and maxima, byte differences, comparisons", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 1024,
		Does:  "carries over 128 bits, the logic of predicates, selections, minima and maxima of integers, FP32 and FP64, a sum that feeds a maximum, differences of bytes",
		Exact: feistel + "integers, and comparisons of finite numbers", Probe: "vabsdiff4.u32.u32.u32.add",
		SASS:  []Opcode{{70, 90, "VABSDIFF4.U8.ACC", 1}, {70, 90, "FMNMX", 2}, {70, 90, "DSETP", 2}, {70, 90, "PLOP3.LUT", 1}},
		Blind: "packed minima and maxima of FP16, comparisons with NaN",
	},
}
