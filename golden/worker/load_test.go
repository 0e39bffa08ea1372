package worker

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/cubin"
	"github.com/assay-gpu/assay/golden/cuda"
	"github.com/assay-gpu/assay/golden/fakecuda"
)

// The result says what ran: the audited machine code where there is any for the GPU and the driver takes it, else PTX, and why.
func TestTheAuditedMachineCodeIsPreferred(t *testing.T) {
	for _, tt := range []struct {
		name       string
		driver     string
		capability int
		code       string
		why        string
	}{
		{"a GPU that there is machine code for", "550.54.15", 86, golden.Cubin, ""},
		{"a newer GPU", "580.65.06", 100, golden.JIT, "no machine code is shipped for compute capability 10.0"},
		{"a driver that is too old for it", "520.61.05", 86, golden.JIT, "INVALID_IMAGE (200): machine code of CUDA 12.4 on a driver of CUDA 11.8"},
	} {
		g := healthy()
		g.Capability = tt.capability
		r, v := runOne(t, fakecuda.Node{Driver: tt.driver, GPUs: []fakecuda.GPU{g}})
		if v.Outcome != golden.Verified {
			t.Errorf("%s: %+v", tt.name, v)
		}
		for _, s := range r.Stages {
			if s.Copy != nil || s.Skip != "" {
				continue
			}
			if s.Code != tt.code || (s.Unaudited == "") != (tt.why == "") || !strings.Contains(s.Unaudited, tt.why) {
				t.Errorf("%s: %s ran %s: %q", tt.name, s.Kernel, s.Code, s.Unaudited)
			}
			if row, ok := cubin.Of(s.Cubin); tt.code == golden.Cubin && (!ok || row.Kernel != s.Kernel || row.Target != "sm_86" || s.Ran() != "cubin:sm_86:"+row.Digest) {
				t.Errorf("%s: %s ran %s", tt.name, s.Kernel, s.Ran())
			}
		}
	}
}

func TestOtherCodeThanWasAuditedProvesNothing(t *testing.T) {
	row := cubin.Row{Registers: 40, Shared: 16}
	same := cuda.Resources{Registers: 40, SharedBytes: 16, BinaryVersion: 80}
	for _, tt := range []struct {
		name   string
		change func(r *cuda.Resources)
		want   string
	}{
		{"the same", func(*cuda.Resources) {}, ""},
		{"another register", func(r *cuda.Resources) { r.Registers++ }, "41 registers, 16 bytes shared, 0 bytes local, binary version 80, its record says 40 registers"},
		{"other shared memory", func(r *cuda.Resources) { r.SharedBytes = 0 }, "0 bytes shared"},
		{"a stack", func(r *cuda.Resources) { r.LocalBytes = 8 }, "8 bytes local"},
		{"code of another capability", func(r *cuda.Resources) { r.BinaryVersion = 75 }, "binary version 75"},
	} {
		r := same
		tt.change(&r)
		if got := otherCode(r, row, 80); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}
