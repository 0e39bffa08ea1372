// Package fakecuda is a CUDA driver without a GPU: a libcuda.so.1 in C that passes each call on to a process that holds
// simulated GPUs, and that process's side, which runs the kernels on the PTX machine.
//
// The library is C, so that the worker that loads it holds one Go runtime. It marks itself by exporting cuAssaySimulated:
// nothing that it reports can be taken for a GPU's.
package fakecuda

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed src
var source embed.FS

// Flags are the arguments of a C compiler that build the library, the output and source names aside.
var Flags = []string{"-shared", "-fPIC", "-O2", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden",
	"-Wl,-soname,libcuda.so.1", "-pthread"}

// Build compiles the library to the file out with $CC, or gcc.
func Build(out string) error {
	dir, err := os.MkdirTemp("", "assay-fakecuda-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, source); err != nil {
		return err
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	args := append(append([]string{}, Flags...), "-o", out, filepath.Join(dir, "src", "cuda.c"))
	if b, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s with %s: %w\n%s", out, cc, err, b)
	}
	return nil
}
