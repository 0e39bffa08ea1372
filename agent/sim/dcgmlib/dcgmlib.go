// Package dcgmlib holds the simulated libdcgm.so.4: its source in C, and how to build it. It is C for the reasons that package
// nvmllib gives.
package dcgmlib

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed src/dcgm.c
var source []byte

// Build compiles the library to the file out with $CC, or gcc.
func Build(out string) error {
	dir, err := os.MkdirTemp("", "assay-dcgmlib-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "dcgm.c")
	if err := os.WriteFile(file, source, 0o644); err != nil {
		return err
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	cmd := exec.Command(cc, "-shared", "-fPIC", "-O2", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden",
		"-Wl,-soname,libdcgm.so.4", "-o", out, file)
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s with %s: %w\n%s", out, cc, err, b)
	}
	return nil
}
