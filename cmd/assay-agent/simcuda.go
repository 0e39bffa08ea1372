package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

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
		visible, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
		return fakecuda.Serve(conn, s.CUDA(), visible, set)
	})
	c.Hidden = true
	return c
}

// placeCUDA makes a simulated node's CUDA driver ready and gives the library's path: that beside this program, else one
// built anew in the node's directory. given says that the caller names a library of their own.
func placeCUDA(dir string, given bool, library string) (string, error) {
	if _, err := sim.Read(dir); err != nil {
		return "", usage(err)
	}
	exe, err := os.Executable()
	if err != nil {
		return "", &exitError{exitUnknown, err}
	}
	if err := os.WriteFile(filepath.Join(dir, "program"), []byte(exe+"\n"), 0o644); err != nil {
		return "", &exitError{exitUnknown, err}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", usage(err)
	}
	os.Setenv(sim.EnvDir, abs)
	if given {
		return library, nil
	}
	if p := filepath.Join(filepath.Dir(exe), "sim", "libcuda.so.1"); exists(p) {
		return p, nil
	}
	p := filepath.Join(abs, "libcuda.so.1")
	if exists(p) {
		return p, nil
	}
	if err := fakecuda.Build(p); err != nil {
		return "", &exitError{exitUnknown, err}
	}
	return p, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
