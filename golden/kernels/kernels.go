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
		ID: "k04_ffma", Rule: "K4", Unit: "FP32 fused multiply-add (FFMA)", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 4096,
		Does:  "fma.rn.f32 of three words of the state, exponents near one, wide apart, subnormal or large by the step",
		Exact: feistel + "IEEE 754 fusedMultiplyAdd, nearest even, subnormals kept", Probe: "fma.rn.f32",
		SASS:  []Opcode{{70, 90, "FFMA", 1}},
		Blind: "overflow, infinities, NaN, and the directed roundings",
	},
	{
		ID: "k05_dfma", Rule: "K5", Unit: "FP64 fused multiply-add (DFMA)", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 8, Steps: 2048,
		Does:  "fma.rn.f64 of three 64-bit words of the state, exponents as in K4",
		Exact: feistel + "IEEE 754 fusedMultiplyAdd, nearest even, subnormals kept", Probe: "fma.rn.f64",
		SASS:  []Opcode{{70, 90, "DFMA", 1}},
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
		ID: "k11_smem", Rule: "K11", Unit: "shared memory", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 1024,
		Does:  "writes and reads in widths of 8 to 64 bits and strides of 1 to 32 banks, another thread reading; every 16 steps a march over all dynamic shared memory",
		Exact: feistel + "integers; the march adds the difference to what was written, which is zero", Probe: "ld.shared.u64",
		SASS:  []Opcode{{70, 75, "LDS.U.64", 1}, {80, 90, "LDS.64", 1}, {70, 90, "STS.64", 1}, {70, 90, "STS.U8", 4}, {70, 90, "STS.U16", 2}},
		Blind: "128-bit accesses, ldmatrix and stmatrix; the last bytes that static shared memory takes",
	},
	{
		ID: "k13_l1", Rule: "K13", Unit: "L1 cache, tags and data", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 8, Steps: 1024, Near: 16, L1: true,
		Does:  "stores four words a thread through the L1 and reads them with ld.global.ca as other threads, in strides of 16 bytes, over 64 KiB",
		Exact: feistel + "integers; between two barriers each word has one writer", Probe: "ld.global.ca.u32",
		SASS:  []Opcode{{70, 90, "LDG.E", 3}, {70, 90, "LDG.E.64", 1}, {70, 90, "STG.E.128", 1}},
		Blind: "L1 lines beyond 64 KiB, and the L1 of a GPU that lets half of it be shared memory all the same; the texture path",
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
		ID: "k24_branch", Rule: "K24", Unit: "branches and reconvergence", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 1024,
		Does:  "lanes part by bits of their own state, walk loops of different length and meet at warp barriers",
		Exact: feistel + "integers", Probe: "mad.lo.u32",
		SASS:  []Opcode{{70, 90, "BRA", 4}},
		Blind: "indirect branches, calls, named barriers",
	},
}
