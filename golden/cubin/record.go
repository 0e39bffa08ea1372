package cubin

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/assay-gpu/assay/golden/kernels"
)

// gate.tsv is the record of the gate: a row for each kernel, assembler and target. make golden-cubins writes it.
//
//go:embed gate.tsv
var gate string

// Shipped is the assembler whose code is shipped.
const Shipped = "12.4"

// Assemblers are the versions of ptxas that the gate looks at, oldest first.
var Assemblers = []string{"11.8", Shipped}

// A Target is what an assembler makes code for.
type Target struct {
	Name       string // sm_90, sm_90a
	Capability int    // 10 · major + minor of the GPUs that run it
}

var targets = []Target{{"sm_70", 70}, {"sm_75", 75}, {"sm_80", 80}, {"sm_86", 86}, {"sm_89", 89}, {"sm_90", 90}}

// exact are the targets of PTX that no other GPU takes.
var exact = []Target{{"sm_90a", 90}}

// Targets are those that a kernel's tier allows.
func Targets(k kernels.Kernel) []Target {
	for _, t := range exact {
		if t.Name == k.Target {
			return []Target{t}
		}
	}
	var out []Target
	for _, t := range targets {
		if k.Skip(t.Capability) == "" {
			out = append(out, t)
		}
	}
	return out
}

// Takes reports whether an assembler takes a kernel's PTX. NVIDIA, "PTX ISA", release notes.
func Takes(assembler string, k kernels.Kernel) bool {
	return assembler == Shipped || k.PTX <= "7.8" && !strings.HasSuffix(k.Target, "a")
}

// A Row is what the gate has found in the code that one assembler makes of one kernel for one target.
type Row struct {
	Kernel       string
	PTX          string // its digest
	Assembler    string // of CUDA 12.4
	Target       string // sm_90
	Registers    int    // a thread
	Shared       int    // static, bytes a block
	Spilled      int    // bytes a thread
	Instructions int    // a step
	Straight     bool   // a step has no branch but the loop's own
	Opcodes      string // of those that the kernel declares, how many a step executes, as IMAD.WIDE.U32=1
	Digest       string // of the machine code
}

// Heading is the record's first line.
const Heading = "# kernel, digest of its PTX, ptxas, target, registers, shared bytes, spilled bytes, instructions a step, straight code, opcodes a step, digest of the machine code: make golden-cubins\n"

// String is the row as it stands in the record.
func (r Row) String() string {
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%t\t%s\t%s", r.Kernel, r.PTX, r.Assembler, r.Target, r.Registers, r.Shared, r.Spilled, r.Instructions, r.Straight, r.Opcodes, r.Digest)
}

// Parse reads a record.
func Parse(text string) ([]Row, error) {
	var out []Row
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 11 {
			return nil, fmt.Errorf("gate record: %d columns, want 11: %q", len(f), line)
		}
		r := Row{Kernel: f[0], PTX: f[1], Assembler: f[2], Target: f[3], Opcodes: f[9], Digest: f[10]}
		for _, n := range []struct {
			to   *int
			text string
		}{{&r.Registers, f[4]}, {&r.Shared, f[5]}, {&r.Spilled, f[6]}, {&r.Instructions, f[7]}} {
			v, err := strconv.Atoi(n.text)
			if err != nil {
				return nil, fmt.Errorf("gate record: %q: %w", line, err)
			}
			*n.to = v
		}
		var err error
		if r.Straight, err = strconv.ParseBool(f[8]); err != nil {
			return nil, fmt.Errorf("gate record: %q: %w", line, err)
		}
		out = append(out, r)
	}
	return out, nil
}

var record = sync.OnceValue(func() []Row {
	rows, err := Parse(gate)
	if err != nil {
		panic(err) // embedded; a test reads it
	}
	return rows
})

// Rows is the record.
func Rows() []Row { return record() }

// Lookup gives the row of a kernel, assembler and target.
func Lookup(kernel, assembler, target string) (Row, bool) {
	for _, r := range record() {
		if r.Kernel == kernel && r.Assembler == assembler && r.Target == target {
			return r, true
		}
	}
	return Row{}, false
}

// Digest names code: the first 16 bytes of its SHA-256, in hex.
func Digest(code []byte) string {
	h := sha256.Sum256(code)
	return hex.EncodeToString(h[:16])
}
