// Package sass has NVIDIA's assemblers make machine code of PTX, where a machine has them, and reads what has become of a
// kernel's step in it. The gate (its test) holds the golden kernels' machine code to what they declare and to the record that
// golden/cubin ships with it.
package sass

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/assay-gpu/assay/golden/cubin"
)

// A Toolkit is the assembler and the disassemblers of one CUDA version.
type Toolkit struct {
	Version string // as 12.4
	bin     string
}

// callTime bounds one call of a tool.
const callTime = 5 * time.Minute

// Find looks for the toolkits of the gate's versions under dir, each in VERSION/bin, oldest first; empty: in the user's cache,
// where .ci/cuda-tools puts them. None without an error: there are none.
func Find(dir string) ([]Toolkit, error) {
	asked := dir != ""
	if !asked {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, nil // no home, no cache
		}
		dir = filepath.Join(cache, "assay", "cuda")
	}
	var out []Toolkit
	for _, v := range cubin.Assemblers {
		bin := filepath.Join(dir, v, "bin")
		if _, err := os.Stat(filepath.Join(bin, "ptxas")); err != nil {
			if asked || !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("assembler %s: %w", v, err)
			}
			return nil, nil
		}
		out = append(out, Toolkit{v, bin})
	}
	return out, nil
}

// FindForTest gives the toolkits for a test that runs them. Where there are none the test is to be left out, unless it runs in
// CI or from make sass-gate: then the error says so.
func FindForTest() ([]Toolkit, error) {
	ts, err := Find("")
	if err == nil && ts == nil && (os.Getenv("CI") == "true" || os.Getenv("SASS_GATE") != "") {
		err = errors.New("no ptxas is unpacked: run .ci/cuda-tools")
	}
	return ts, err
}

// Run runs one of the tools and gives all that it says. The error holds its first line.
func (t Toolkit) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTime, fmt.Errorf("no end within %s", callTime))
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(t.bin, name), args...)
	c.Env = append(os.Environ(), "PATH="+t.bin+":"+os.Getenv("PATH"))
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return out, fmt.Errorf("%s %s: %w: %s", name, t.Version, err, first)
	}
	return out, nil
}
