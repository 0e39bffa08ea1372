package worker

import (
	"fmt"
	"math/bits"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/assay-gpu/assay/golden"
)

// recompute computes a golden anew on two cores of this CPU, or on one where the process may use no other, and gives the
// block's words and the cores. The error says that the CPU does not give the embedded golden.
func recompute(compute func() ([]uint32, error), kernel string, seed int, want golden.Digest) ([]uint32, []int, error) {
	var block []uint32
	cores := allowed(2)
	for _, c := range cores {
		var got golden.Digest
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine, and its pin with it
			pin(c)
			block, err = compute()
			got = golden.DigestOf(block)
		}()
		<-done
		if err != nil {
			return nil, cores, fmt.Errorf("this CPU computes no golden for %s, seed %d (core %d): %w", kernel, seed, c, err)
		}
		if got != want {
			return nil, cores, fmt.Errorf("this CPU computes %s for %s, seed %d, where the embedded golden is %s (core %d)", got, kernel, seed, want, c)
		}
	}
	return block, cores, nil
}

// mask is a cpu_set_t of 1024 CPUs.
type mask [16]uint64

// allowed gives up to n CPUs that this process may use; CPU 0 alone when the kernel does not say.
func allowed(n int) []int {
	var m mask
	if _, _, e := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(m), uintptr(unsafe.Pointer(&m))); e != 0 {
		return []int{0}
	}
	var out []int
	for i, w := range m {
		for ; w != 0 && len(out) < n; w &= w - 1 {
			out = append(out, 64*i+bits.TrailingZeros64(w))
		}
	}
	return out
}

// pin keeps the calling thread on one CPU. Where it may not, the thread runs where it does: the golden is computed all the
// same.
func pin(cpu int) {
	var m mask
	m[cpu/64] = 1 << (cpu % 64)
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(m), uintptr(unsafe.Pointer(&m)))
}
