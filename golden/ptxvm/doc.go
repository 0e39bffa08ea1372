// Package ptxvm is a machine that runs PTX as a GPU would: warps that diverge and meet again, shared memory, several SMs
// whose L1 caches know nothing of each other, stores that arrive late, atomics, shuffles and tensor products.
//
// It is stricter than hardware. A register or byte that was never written and reaches an output, two accesses that no
// barrier, fence or atomic orders, a collective that not all lanes reach: each stops the launch with a Trap. Faults sit at
// physical places (SM, partition, lane, pipe) and strike whatever runs there. The same seed gives the same run.
package ptxvm

import "fmt"

// A Trap is why a launch was stopped.
type Trap struct {
	Kind   string // illegal_address, misaligned, illegal_instruction, uninitialised, race, deadlock, timeout, divergence
	Detail string
	Entry  string
	Line   int // of the PTX text; 0 when no instruction is to blame
	SM     int
	Thread string // block and thread, as "3.17"
}

func (t *Trap) Error() string {
	s := fmt.Sprintf("%s: %s", t.Entry, t.Kind)
	if t.Line > 0 {
		s += fmt.Sprintf(" at line %d", t.Line)
	}
	if t.Thread != "" {
		s += fmt.Sprintf(", SM %d, thread %s", t.SM, t.Thread)
	}
	return s + ": " + t.Detail
}

// A Unit is a pipe or memory in which a fault can sit, by the names of the fault file.
type Unit uint8

const (
	noUnit Unit = iota
	imad
	alu
	lop3
	shift
	fma32
	fma64
	fma16
	tensor16
	tensor8
	tensor64
	tensorInt8
	mufu
	cvt
	lsuAddr
	lsuData
	smem
	regfile
	l1Tag
	l1Data
	l2
	hbm
	atomicUnit
	shuffle
	predicate
	uniform
	branch
	constant
	icache
	barrier
	tma
	copyEngine
	pcie
	nvlink
	units
)

var unitNames = [units]string{
	"", "imad", "alu", "lop3", "shift", "fma32", "fma64", "fma16", "tensor16", "tensor8", "tensor64", "tensor_int8", "mufu", "cvt",
	"lsu_addr", "lsu_data", "smem", "regfile", "l1_tag", "l1_data", "l2", "hbm", "atomic", "shuffle", "predicate", "uniform",
	"branch", "const", "icache", "barrier", "tma", "copy_engine", "pcie", "nvlink",
}

func (u Unit) String() string { return unitNames[u] }
