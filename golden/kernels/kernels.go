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

//go:embed *.ptx
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
	Steps  int // of a full run, at 1,024 threads a block
}

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
	b, err := files.ReadFile(k.ID + ".ptx")
	if err != nil {
		panic(fmt.Sprintf("kernels: %v", err)) // embedded above; a test holds the two together
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
		ID: "k04_ffma", Rule: "K4", Unit: "FP32 fused multiply-add (FFMA)", Target: "sm_70", PTX: "6.3", MinCC: 70, Words: 4, Steps: 4096,
		Does:  "fma.rn.f32 of three words of the state, exponents near one, wide apart, subnormal or large by the step",
		Exact: feistel + "IEEE 754 fusedMultiplyAdd, nearest even, subnormals kept", Probe: "fma.rn.f32",
		SASS:  []Opcode{{70, 90, "FFMA", 1}},
		Blind: "overflow, infinities, NaN, and the directed roundings",
	},
	{
		ID: "k18_mma_f16", Rule: "K18", Unit: "tensor core, FP16 with FP32 accumulate (HMMA)", Target: "sm_80", PTX: "7.0", MinCC: 80, Words: 10, Steps: 512,
		Does:  "four m16n8k16 products accumulate on a fresh C; all bits of each D are absorbed",
		Exact: feistel + "every product and every sum is a multiple of u/2 below 2^24 u/2, so no accumulator of any generation drops a bit",
		Probe: "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
		SASS:  []Opcode{{80, 90, "HMMA.16816.F32", 4}},
		Blind: "rounding in the accumulator; on sm_90 the wgmma path, and on sm_100 tcgen05",
	},
}
