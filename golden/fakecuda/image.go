package fakecuda

import (
	"fmt"

	"github.com/assay-gpu/assay/golden/cubin"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

// A module is loaded code.
type module struct {
	*ptxvm.Module
	machine *cubin.Function // nil for PTX
}

func (s *server) add(m module) (int32, uint64, []byte) {
	s.handles++
	s.modules[s.handles] = m
	return 0, s.handles, nil
}

// loadImage loads machine code. The PTX machine runs no machine code: it runs the PTX from which this very code was made, as
// the gate's record says by its digest. What the record does not know, or is not a byte for byte what was recorded, is refused
// like a damaged image; what is for other GPUs, or newer than the driver, as a driver would.
func (s *server) loadImage(code []byte) (int32, uint64, []byte) {
	img, err := cubin.Inspect(code)
	if err != nil {
		return errImage, 0, []byte(err.Error())
	}
	has := s.gpus[s.gpu].Capability
	if img.Capability/10 != has/10 || img.Capability > has || img.Exact && img.Capability != has {
		return errNoBinary, 0, fmt.Appendf(nil, "machine code for capability %d on a device of capability %d", img.Capability, has)
	}
	// Machine code of CUDA 12 needs a driver that knows CUDA 12. NVIDIA, "CUDA Compatibility", minor version compatibility.
	if cuda := s.node.cuda(); cuda < 12000 {
		return errImage, 0, fmt.Appendf(nil, "machine code of CUDA %s on a driver of CUDA %d.%d", cubin.Shipped, cuda/1000, cuda%1000/10)
	}
	row, known := cubin.Of(cubin.Digest(code))
	k, ours := kernels.Lookup(row.Kernel)
	if !known || !ours || cubin.Digest([]byte(k.Source())) != row.PTX {
		return errImage, 0, []byte("the simulated driver runs machine code by the PTX it was made from, and knows none for this")
	}
	m, err := ptxvm.Parse(k.Source())
	if err != nil {
		return errImage, 0, []byte(err.Error())
	}
	f := img.Functions[k.ID]
	return s.add(module{m, &f})
}
