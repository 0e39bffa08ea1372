package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/golden/fakecuda"
)

// simCUDA is the process behind a simulated libcuda.so.1, which starts it. It is not for people.
func simCUDA(dir *string) *cobra.Command {
	c := simDo(dir, "cuda", "Answer the calls of a simulated CUDA driver on descriptor 3", cobra.NoArgs, func(*cobra.Command, []string) error {
		s, err := sim.Read(*dir)
		if err != nil {
			return err
		}
		conn := os.NewFile(3, "cuda")
		if conn == nil {
			return fmt.Errorf("no descriptor 3: the simulated libcuda.so.1 starts this")
		}
		defer conn.Close()
		// Copies are tested with tens of megabytes that live for one call each, on eight GPUs at once: what is dead is collected soon.
		debug.SetMemoryLimit(simMemory)
		visible, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
		return fakecuda.Serve(conn, s.CUDA(), visible, set)
	})
	c.Hidden = true
	return c
}

// simMemory is where a simulated driver's process begins to collect what is dead all the time, in bytes. It is no bound.
const simMemory = 192 << 20

// placeCUDA makes a simulated node's CUDA driver ready and gives the library's path, which is built if need be. given says
// that the caller names a library of their own.
func placeCUDA(dir string, given bool, library string) (string, error) {
	if _, err := sim.Read(dir); err != nil {
		return "", usage(err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", usage(err)
	}
	os.Setenv(sim.EnvDir, abs)
	if err := linkCUDA(abs); err != nil {
		return "", &exitError{exitUnknown, err}
	}
	if given {
		return library, nil
	}
	p := sim.In(abs).CUDA
	if exists(p) {
		return p, nil
	}
	if err := fakecuda.Build(p); err != nil {
		return "", &exitError{exitUnknown, err}
	}
	return p, nil
}

// linkCUDA says in a simulated node's directory which program answers its CUDA calls: this one. Where a library was built
// beside this program, it is the node's.
func linkCUDA(dir string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	program := filepath.Join(dir, "program")
	if was, err := os.ReadFile(program); err != nil || string(was) != exe+"\n" {
		if err := atomicfile.Write(program, []byte(exe+"\n"), 0o644); err != nil {
			return err
		}
	}
	built, at := filepath.Join(filepath.Dir(exe), "sim", "libcuda.so.1"), sim.In(dir).CUDA
	if !exists(built) || exists(at) {
		return nil
	}
	if err := os.Symlink(built, at); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
