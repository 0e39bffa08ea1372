package corpus

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
)

// Tools are NVIDIA's assemblers and their disassembler, where a machine has them. make sass-gate unpacks them.
type Tools struct {
	dirs []string // of each version, oldest first: <dir>/bin/ptxas
	name []string
}

// assembleTime bounds one call of an assembler.
const assembleTime = 5 * time.Minute

// FindTools looks for the assemblers 11.8 and 12.4 under dir; empty: in the user's cache, where .ci/cuda-tools puts them. nil
// without an error: there are none.
func FindTools(dir string) (*Tools, error) {
	asked := dir != ""
	if !asked {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, nil // no home, no cache
		}
		dir = filepath.Join(cache, "assay", "cuda")
	}
	t := &Tools{}
	for _, v := range []string{"11.8", "12.4"} {
		bin := filepath.Join(dir, v, "bin")
		if _, err := os.Stat(filepath.Join(bin, "ptxas")); err != nil {
			if asked || !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("assembler %s: %w", v, err)
			}
			return nil, nil
		}
		t.dirs, t.name = append(t.dirs, bin), append(t.name, v)
	}
	return t, nil
}

// A build is one assembler, level and target.
type build struct {
	tool   int
	level  int
	target int
}

func (t *Tools) describe(b build) string {
	return fmt.Sprintf("ptxas %s -O%d sm_%d", t.name[b.tool], b.level, b.target)
}

// reference is the build whose pairs count.
var reference = build{tool: 1, level: 3, target: 90}

// builds are those that a program of a tier must come through.
func (t *Tools) builds(tier int) []build {
	var out []build
	for tool := range t.dirs {
		for _, level := range []int{1, 3} {
			for _, target := range []int{tier, 90} {
				out = append(out, build{tool, level, target})
			}
		}
	}
	return out
}

// assemble makes machine code of a module and reads it back.
func (t *Tools) assemble(ctx context.Context, ptx string, b build) (map[string][]sassInst, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, assembleTime, fmt.Errorf("no end within %s", assembleTime))
	defer cancel()
	dir, err := os.MkdirTemp("", "assay-corpus-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	src, cubin := filepath.Join(dir, "m.ptx"), filepath.Join(dir, "m.cubin")
	if err := os.WriteFile(src, []byte(ptx), 0o600); err != nil {
		return nil, err
	}
	bin := t.dirs[b.tool]
	run := func(name string, args ...string) ([]byte, error) {
		c := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TMPDIR="+dir)
		c.WaitDelay = time.Second
		out, err := c.CombinedOutput()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return nil, fmt.Errorf("%s: %s: %w: %s", t.describe(b), name, err, firstLine(string(out)))
		}
		return out, nil
	}
	if _, err := run("ptxas", fmt.Sprintf("-arch=sm_%d", b.target), fmt.Sprintf("-O%d", b.level), src, "-o", cubin); err != nil {
		return nil, err
	}
	text, err := run("cuobjdump", "-sass", cubin)
	if err != nil {
		return nil, err
	}
	return readSASS(string(text)), nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// pairsOf gives the pairs of each program: of the machine code where there are tools, else of the PTX. A program that the
// assembler does not take has none.
func pairsOf(ctx context.Context, t *Tools, cs []code) ([]map[pair]bool, error) {
	out := make([]map[pair]bool, len(cs))
	if t == nil {
		for i, c := range cs {
			out[i] = pairsOfPTX(c.body)
		}
		return out, nil
	}
	all, err := t.each(ctx, cs, reference)
	for i := range cs {
		if all[i] != nil {
			out[i] = pairsOfSASS(all[i])
		}
	}
	return out, err
}

// each assembles programs as one module or, when that is not taken, each by itself: nil for one that is not taken even so.
func (t *Tools) each(ctx context.Context, cs []code, b build) ([][]sassInst, error) {
	out := make([][]sassInst, len(cs))
	tier, seen := 70, map[string]bool{}
	var text strings.Builder
	for _, c := range cs {
		tier = max(tier, c.tier)
	}
	text.WriteString(head(tier))
	for _, c := range cs {
		if !seen[c.id] {
			text.WriteString(c.text)
		}
		seen[c.id] = true
	}
	if len(cs) == 0 {
		return out, nil
	}
	all, err := t.assemble(ctx, text.String(), b)
	if err == nil {
		for i, c := range cs {
			out[i] = all[c.id]
		}
		return out, nil
	}
	if ctx.Err() != nil {
		return out, err
	}
	if len(cs) == 1 {
		return out, nil
	}
	for i, c := range cs {
		one, err := t.each(ctx, []code{c}, b)
		if err != nil {
			return out, err
		}
		out[i] = one[0]
	}
	return out, nil
}

// gate holds programs to what they are meant to be, in every build. It gives a refusal for each that is not, by its place.
func (t *Tools) gate(ctx context.Context, cs []code) (map[int]error, error) {
	bad := map[int]error{}
	for _, tier := range []int{70, 80} {
		var of []code
		var at []int
		for i, c := range cs {
			if c.tier == tier {
				of, at = append(of, c), append(at, i)
			}
		}
		if len(of) == 0 {
			continue
		}
		frame := program{tier: tier}.write()
		for _, b := range t.builds(tier) {
			all, err := t.each(ctx, append(of, frame), b)
			if err != nil {
				return nil, err
			}
			for i, c := range of {
				switch why := missing(c.step(), all[i], all[len(of)]); {
				case all[i] == nil:
					bad[at[i]] = refuse(badOpcodes, "%s: %s does not take it", c.id, t.describe(b))
				case why != "":
					bad[at[i]] = refuse(badOpcodes, "%s: %s: %s", c.id, t.describe(b), why)
				}
			}
		}
	}
	return bad, nil
}
