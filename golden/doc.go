// Package golden decides whether a GPU computed what it should: which kernels a suite runs and how large, what the worker
// reports of each, how outputs are compared, what each (kernel, capability) is trusted for, and the verdict.
//
// A verdict comes from counted positives: so many blocks, each on an SM of its own, whose every word was the known one. No
// mismatch seen is not a pass. Whatever was not run, not covered, or ended in an error is not tested.
//
// The package is pure: the worker makes the driver calls.
package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/assay-gpu/assay/golden/cubin"
	"github.com/assay-gpu/assay/golden/kernels"
)

// A Size is how large a kernel's run is.
type Size struct {
	Name    string
	Threads int // a block
	divide  int // of the kernel's full number of steps
}

// The sizes for which goldens are embedded. Full is for GPUs; Reduced is for the simulated one, which is some ten thousand
// times slower.
var (
	Full    = Size{"full", 1024, 1}
	Reduced = Size{"reduced", 128, 64}
)

// SizeOf gives a size by its name.
func SizeOf(name string) (Size, error) {
	for _, s := range []Size{Full, Reduced} {
		if s.Name == name {
			return s, nil
		}
	}
	return Size{}, fmt.Errorf("size %q: want full or reduced", name)
}

// SizeOfOwn is the size of programs that come with their goldens: their own number of steps.
func SizeOfOwn(name string, threads int) Size { return Size{name, threads, 1} }

// Steps is how many steps a kernel runs at this size.
func (s Size) Steps(k kernels.Kernel) int { return max(k.Steps/s.divide, 1) }

// Seeds is how many seeds have embedded goldens: 0 to Seeds-1.
const Seeds = 64

// KernelDigest names a kernel's code by its PTX, as the gate's record does.
func KernelDigest(k kernels.Kernel) string { return cubin.Digest([]byte(k.Source())) }

// SuiteDigest names what a suite runs: the PTX and machine code of its kernels and copies, in order, the sizes, and the goldens
// of every seed.
func SuiteDigest(s Suite, size Size) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %d %d\n", s.Name, size.Name, size.Threads, size.divide)
	for _, id := range s.Kernels {
		k, _ := kernels.Lookup(id)
		fmt.Fprintf(h, "%s %s %d\n", id, KernelDigest(k), size.Steps(k))
		for _, t := range cubin.Targets(k) {
			row, _ := cubin.Lookup(id, cubin.Shipped, t.Name)
			fmt.Fprintf(h, "%s %s\n", t.Name, row.Digest)
		}
		for seed := range Seeds {
			fmt.Fprintf(h, "%s\n", digests()[digestKey{id, size.Name, seed}])
		}
	}
	for _, id := range s.Copies {
		c, _ := LookupCopy(id)
		fmt.Fprintf(h, "%s %s %d\n", id, c.Digest(), size.CopyBytes())
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
