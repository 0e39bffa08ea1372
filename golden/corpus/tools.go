package corpus

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/assay-gpu/assay/golden/sass"
)

// Tools are the assemblers and disassemblers that candidates are held to, oldest first.
type Tools struct{ kits []sass.Toolkit }

// FindTools looks for the toolkits as sass.Find does. nil without an error: there are none.
func FindTools(dir string) (*Tools, error) {
	kits, err := sass.Find(dir)
	if err != nil || kits == nil {
		return nil, err
	}
	return &Tools{kits}, nil
}

// A build is one assembler, level and target.
type build struct {
	tool   int
	level  int
	target int
}

func (t *Tools) describe(b build) string {
	return fmt.Sprintf("ptxas %s -O%d sm_%d", t.kits[b.tool].Version, b.level, b.target)
}

// reference is the build whose pairs count.
var reference = build{tool: 1, level: 3, target: 90}

// builds are those that a program of a tier must come through.
func (t *Tools) builds(tier int) []build {
	var out []build
	for tool := range t.kits {
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
	dir, err := os.MkdirTemp("", "assay-corpus-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	src, cubin := filepath.Join(dir, "m.ptx"), filepath.Join(dir, "m.cubin")
	if err := os.WriteFile(src, []byte(ptx), 0o600); err != nil {
		return nil, err
	}
	kit := t.kits[b.tool]
	if _, err := kit.Run(ctx, "ptxas", fmt.Sprintf("-arch=sm_%d", b.target), fmt.Sprintf("-O%d", b.level), src, "-o", cubin); err != nil {
		return nil, fmt.Errorf("%s: %w", t.describe(b), err)
	}
	text, err := kit.Run(ctx, "cuobjdump", "-sass", cubin)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.describe(b), err)
	}
	return readSASS(string(text)), nil
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
