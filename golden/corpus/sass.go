package corpus

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A sassInst is one machine instruction.
type sassInst struct{ op, class string }

var sassLine = regexp.MustCompile(`^\s+/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+ )?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)([^;]*);`)

// readSASS reads what cuobjdump -sass prints: each function's instructions.
func readSASS(text string) map[string][]sassInst {
	out := map[string][]sassInst{}
	name := ""
	for l := range strings.Lines(text) {
		if _, n, ok := strings.Cut(l, "Function : "); ok {
			name = strings.TrimSpace(n)
			continue
		}
		m := sassLine.FindStringSubmatch(l)
		if m == nil || name == "" {
			continue
		}
		out[name] = append(out[name], sassInst{m[2], sassClass(m[3], m[1] != "")})
	}
	return out
}

// sassClass says of what kind an instruction's operands are: R a register, U a uniform one, P a predicate, c a constant bank,
// m memory, s a special register, i a constant.
func sassClass(operands string, guard bool) string {
	var b strings.Builder
	for a := range strings.SplitSeq(operands, ",") {
		a = strings.TrimLeft(strings.TrimSpace(a), "-!~|")
		switch {
		case a == "":
		case strings.HasPrefix(a, "["):
			b.WriteByte('m')
		case strings.HasPrefix(a, "c["):
			b.WriteByte('c')
		case strings.HasPrefix(a, "SR_"):
			b.WriteByte('s')
		case strings.HasPrefix(a, "UP"), strings.HasPrefix(a, "P"):
			b.WriteByte('P')
		case strings.HasPrefix(a, "UR"):
			b.WriteByte('U')
		case strings.HasPrefix(a, "R"):
			b.WriteByte('R')
		case strings.HasPrefix(a, "desc["):
			b.WriteByte('m')
		default:
			b.WriteByte('i')
		}
	}
	if guard {
		b.WriteByte('?')
	}
	return b.String()
}

// pairsOfSASS gives the pairs of a function. What does nothing is left out.
func pairsOfSASS(code []sassInst) map[pair]bool {
	out := map[pair]bool{}
	prev := "entry"
	for _, i := range code {
		if i.op == "NOP" {
			continue
		}
		out[pair(i.op+" after "+prev+" "+i.class)] = true
		prev = i.op
	}
	return out
}

// families are instructions that no assembler may make others of: as many as the step has, at least, must be in the machine
// code, beyond those of the program's frame.
var families = []struct {
	name string
	ptx  func(l line) bool
	sass []string // stems
}{
	{"fp32", func(l line) bool { return isOf(l, "f32", "add", "mul", "fma") }, []string{"FADD", "FMUL", "FFMA"}},
	{"fp64", func(l line) bool { return isOf(l, "f64", "add", "mul", "fma") }, []string{"DADD", "DMUL", "DFMA"}},
	{"fp16", func(l line) bool { return isOf(l, "f16x2", "add", "mul", "fma") || isOf(l, "bf16x2", "fma") }, []string{"HADD2", "HMUL2", "HFMA2"}},
	{"mufu", func(l line) bool {
		return l.float() != "" && slices.Contains([]string{"div", "rcp", "sqrt"}, l.stem()) || l.op == "div.u32" || l.op == "rem.u32"
	}, []string{"MUFU", "I2F", "CALL"}},
	{"popc", func(l line) bool { return l.stem() == "popc" }, []string{"POPC", "UPOPC"}},
	{"brev", func(l line) bool { return l.stem() == "brev" }, []string{"BREV", "UBREV"}},
	{"flo", func(l line) bool { return l.stem() == "bfind" || l.stem() == "clz" }, []string{"FLO", "UFLO"}},
	{"dp4a", func(l line) bool { return l.stem() == "dp4a" }, []string{"IDP"}},
	{"sad", func(l line) bool { return l.stem() == "sad" }, []string{"VABSDIFF", "IABS", "IADD3", "IMAD"}},
	{"shfl", func(l line) bool { return l.stem() == "shfl" }, []string{"SHFL"}},
	{"vote", func(l line) bool { return l.stem() == "vote" }, []string{"VOTE", "VOTEU"}},
	{"match", func(l line) bool { return l.stem() == "match" }, []string{"MATCH"}},
	{"redux", func(l line) bool { return l.stem() == "redux" }, []string{"REDUX", "CREDUX"}},
	{"lds", func(l line) bool { return strings.HasPrefix(l.op, "ld.shared") }, []string{"LDS"}},
	{"sts", func(l line) bool { return strings.HasPrefix(l.op, "st.shared") }, []string{"STS"}},
	{"atoms", func(l line) bool {
		return strings.HasPrefix(l.op, "atom.shared") || strings.HasPrefix(l.op, "red.shared")
	}, []string{"ATOMS"}},
	{"ldg", func(l line) bool { return strings.HasPrefix(l.op, "ld.global") }, []string{"LDG", "LD"}},
	{"stg", func(l line) bool { return strings.HasPrefix(l.op, "st.global") }, []string{"STG", "ST"}},
	{"atomg", func(l line) bool { return strings.HasPrefix(l.op, "atom.global") }, []string{"ATOMG", "ATOM"}},
	{"hmma", func(l line) bool { return l.stem() == "mma" && l.has("f32") }, []string{"HMMA"}},
	{"imma", func(l line) bool { return l.stem() == "mma" && l.has("s32") }, []string{"IMMA"}},
	{"f2i", func(l line) bool { return l.stem() == "cvt" && l.has("s32") && l.float() == "" }, []string{"F2I", "FRND"}},
	{"i2f", func(l line) bool {
		return l.stem() == "cvt" && l.float() != "" && (strings.HasSuffix(l.op, "32.u32") || strings.HasSuffix(l.op, "32.s32") || strings.HasSuffix(l.op, "64.u32") || strings.HasSuffix(l.op, "64.s32"))
	}, []string{"I2F", "I2FP"}},
	{"f2f", func(l line) bool { return l.op == "cvt.f64.f32" || l.op == "cvt.rn.f32.f64" }, []string{"F2F"}},
	{"bar", func(l line) bool { return l.op == "bar.sync" }, []string{"BAR"}},
}

func isOf(l line, float string, stems ...string) bool {
	return l.float() == float && slices.Contains(stems, l.stem())
}

func count(code []sassInst, stems []string) int {
	n := 0
	for _, i := range code {
		s, _, _ := strings.Cut(i.op, ".")
		if slices.Contains(stems, s) {
			n++
		}
	}
	return n
}

// missing says which instructions of a step an assembler made away with, empty when none. frame is the code of a program
// whose step is empty.
func missing(step []line, code, frame []sassInst) string {
	for _, f := range families {
		want := 0
		for _, l := range step {
			if l.label == "" && f.ptx(l) {
				want++
			}
		}
		if want == 0 {
			continue
		}
		if got := count(code, f.sass) - count(frame, f.sass); got < want {
			return fmt.Sprintf("%d of %s where the step has %d", got, f.name, want)
		}
	}
	return ""
}
