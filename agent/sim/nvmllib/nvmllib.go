// Package nvmllib holds the simulated libnvidia-ml.so.1: its source in C, the names it exports, and how to build it.
//
// It is C and not a Go c-shared library, so that the process that loads it holds one Go runtime: a second one costs 2 MiB
// and five threads in each agent's child, and takes over the first one's preemption signal.
package nvmllib

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

//go:embed src
var source embed.FS

// Flags are the arguments of a C compiler that build the library from src/nvml.c, the output and source names aside.
var Flags = []string{"-shared", "-fPIC", "-O2", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden",
	"-Wl,-soname,libnvidia-ml.so.1", "-pthread"}

// Functions names every exported function, in the order of the call counters.
var Functions = functions()

func functions() []string {
	def, err := source.ReadFile("src/functions.def")
	if err != nil {
		panic(err) // embedded above
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^F\((\w+)\)$`).FindAllSubmatch(def, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// Build compiles the library to the file out with $CC, or gcc.
func Build(out string) error {
	dir, err := os.MkdirTemp("", "assay-nvmllib-")
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
	args := append(append([]string{}, Flags...), "-o", out, filepath.Join(dir, "src", "nvml.c"))
	if b, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s with %s: %w\n%s", out, cc, err, b)
	}
	return nil
}
