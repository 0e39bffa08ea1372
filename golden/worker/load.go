package worker

import (
	"fmt"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/cubin"
	"github.com/assay-gpu/assay/golden/cuda"
	"github.com/assay-gpu/assay/golden/kernels"
)

// load gives a kernel's code to the driver: the audited machine code for this GPU where there is any and the driver takes it,
// else the PTX. The stage says which, and why it is the PTX. nil without an error: the stage says why it cannot be run.
func (t *tester) load(k kernels.Kernel, s *golden.Stage) (*cuda.Function, error) {
	c, why := cubin.For(k, t.gpu.Capability)
	if why == "" {
		f, err := t.dev.LoadCubin(c.Image, k.ID)
		if err == nil {
			s.Code, s.Cubin, s.Target = golden.Cubin, c.Digest, c.Target
			return t.audit(f, c, s)
		}
		if !refused(err) {
			return nil, err
		}
		why = err.Error()
	}
	s.Code, s.Unaudited = golden.JIT, why
	f, err := t.dev.LoadPTX(k.Source(), k.ID)
	if refused(err) {
		s.Err = err.Error() // this driver cannot run it; others may still run
		return nil, nil
	}
	return f, err
}

// refused reports whether the driver cannot run the code, which says nothing of the GPU.
func refused(err error) bool {
	switch cuda.Code(err) {
	case cuda.InvalidImage, cuda.UnsupportedPTX, cuda.InvalidPTX, cuda.NoBinary:
		return true
	}
	return false
}

// audit holds what the driver says of loaded code to the gate's record. nil: it is other code, and proves nothing.
func (t *tester) audit(f *cuda.Function, c cubin.Code, s *golden.Stage) (*cuda.Function, error) {
	r, err := f.Resources()
	if err != nil {
		return nil, err
	}
	if s.Err = otherCode(r, c.Row, t.gpu.Capability); s.Err != "" {
		return nil, f.Unload()
	}
	return f, nil
}

// otherCode says how loaded code differs from what was recorded of it, empty when it does not.
func otherCode(r cuda.Resources, row cubin.Row, capability int) string {
	want := cuda.Resources{Registers: row.Registers, SharedBytes: row.Shared, BinaryVersion: capability}
	if r == want {
		return ""
	}
	return fmt.Sprintf("the driver loaded other code than the gate has looked at: %s, its record says %s", resources(r), resources(want))
}

func resources(r cuda.Resources) string {
	return fmt.Sprintf("%d registers, %d bytes shared, %d bytes local, binary version %d", r.Registers, r.SharedBytes, r.LocalBytes, r.BinaryVersion)
}
