package sass

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/golden/kernels"
)

// A Loop is what a kernel's step has become in machine code.
type Loop struct {
	Instructions int
	Straight     bool           // no branch in it but its own: every instruction is executed once a step
	Count        map[string]int // by opcode, with its modifiers, as IMAD.WIDE.U32
}

var sassLine = regexp.MustCompile(`(?m)^\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+ )?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)([^;/]*)`)

var branchTarget = regexp.MustCompile(`0x([0-9a-f]+)`)

// label is how nvdisasm names a place, and use how it refers to it.
var (
	label = regexp.MustCompile(`(?m)^(\.L_x_\d+):\s+/\*([0-9a-f]{4,})\*/`)
	use   = regexp.MustCompile("`\\((\\.L_x_\\d+)\\)")
)

// numbered puts addresses for labels, as cuobjdump prints them.
func numbered(sass string) string {
	at := map[string]string{}
	for _, m := range label.FindAllStringSubmatch(sass, -1) {
		at[m[1]] = "0x" + m[2]
	}
	return use.ReplaceAllStringFunc(sass, func(u string) string { return at[u[2:len(u)-1]] })
}

// StepLoop finds the loop over the steps in the output of nvdisasm -c, or cuobjdump -sass: of all loops the one that holds the
// most of the opcodes that the kernel declares.
func StepLoop(sass string, k kernels.Kernel, capability int) (Loop, error) {
	type line struct {
		at     int
		op     string
		target int // of a branch, else -1
	}
	var code []line
	for _, m := range sassLine.FindAllStringSubmatch(numbered(sass), -1) {
		at, err := strconv.ParseInt(m[1], 16, 64)
		if err != nil {
			return Loop{}, fmt.Errorf("%s: address %q", k.ID, m[1])
		}
		l := line{int(at), m[2], -1}
		if t := branchTarget.FindStringSubmatch(m[3]); t != nil && strings.HasPrefix(l.op, "BRA") {
			v, err := strconv.ParseInt(t[1], 16, 64)
			if err != nil {
				return Loop{}, fmt.Errorf("%s: target %q", k.ID, t[1])
			}
			l.target = int(v)
		}
		code = append(code, l)
	}
	best, most := Loop{}, 0
	for _, b := range code {
		if b.target < 0 || b.target >= b.at {
			continue
		}
		loop, wanted := Loop{Straight: true, Count: map[string]int{}}, 0
		for _, l := range code {
			if l.at < b.target || l.at > b.at {
				continue
			}
			loop.Instructions++
			loop.Count[l.op]++
			if l.at != b.at && (strings.HasPrefix(l.op, "BRA") || strings.HasPrefix(l.op, "CALL") || strings.HasPrefix(l.op, "BSSY") || strings.HasPrefix(l.op, "RET")) {
				loop.Straight = false
			}
		}
		for _, o := range k.SASS {
			if capability >= o.From && capability <= o.To {
				wanted += loop.Of(o.Name)
			}
		}
		if wanted > most || wanted == most && wanted > 0 && loop.Instructions > best.Instructions {
			best, most = loop, wanted
		}
	}
	if most == 0 {
		return best, fmt.Errorf("%s for %d: no loop holds any of its opcodes", k.ID, capability)
	}
	return best, nil
}

// Of counts an opcode with whatever modifiers follow.
func (l Loop) Of(name string) int {
	n := 0
	for op, c := range l.Count {
		if op == name || strings.HasPrefix(op, name+".") {
			n += c
		}
	}
	return n
}

// Faults says where a loop is not what the kernel declares: exactly so many of each opcode in straight code, and at least so
// many where it has branches of its own.
func (l Loop) Faults(k kernels.Kernel, capability int) []string {
	var out []string
	for _, o := range k.SASS {
		if capability < o.From || capability > o.To {
			continue
		}
		if n := l.Of(o.Name); n < o.Count || l.Straight && n != o.Count {
			out = append(out, fmt.Sprintf("%s for %d: %d %s a step, declared %d", k.ID, capability, n, o.Name, o.Count))
		}
	}
	slices.Sort(out)
	return out
}
