package corpus

import (
	"fmt"
	"regexp"
	"strings"
)

// A line is one instruction of a step's text.
type line struct {
	at    int // in the module's text, from 1
	guard bool
	op    string   // as mad.wide.u32
	args  []string // destinations first
	label string   // instead of an instruction
}

// lines reads a step's text, whose first line is the module's line first. It knows the text that this package writes.
func lines(body string, first int) []line {
	var out []line
	for i, text := range strings.Split(strings.TrimSuffix(body, "\n"), "\n") {
		text = strings.TrimSpace(text)
		l := line{at: first + i}
		if name, ok := strings.CutSuffix(text, ":"); ok {
			l.label = name
			out = append(out, l)
			continue
		}
		text = strings.TrimSuffix(text, ";")
		if strings.HasPrefix(text, "@") {
			l.guard = true
			_, text, _ = strings.Cut(text, " ")
		}
		op, rest, _ := strings.Cut(text, " ")
		l.op = op
		l.args = operands(rest)
		out = append(out, l)
	}
	return out
}

// operands cuts an operand list at commas outside braces; d|p are two.
func operands(s string) []string {
	var out []string
	depth, from := 0, 0
	put := func(to int) {
		if t := strings.TrimSpace(s[from:to]); t != "" {
			out = append(out, strings.Split(t, "|")...)
		}
	}
	for i, c := range s {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				put(i)
				from = i + 1
			}
		}
	}
	put(len(s))
	return out
}

// stem is the first part of an opcode.
func (l line) stem() string {
	s, _, _ := strings.Cut(l.op, ".")
	return s
}

func (l line) has(mod string) bool { return strings.Contains(l.op+".", "."+mod+".") }

// writes says whether the instruction has a result in a register.
func (l line) writes() bool {
	switch l.stem() {
	case "", "st", "red", "bar", "bra":
		return false
	}
	return true
}

// float gives the format of the result, as "f32"; empty when it is none.
func (l line) float() string {
	mods := strings.Split(l.op, ".")
	switch mods[0] {
	case "cvt":
		for _, m := range mods[1:] {
			if m == "rn" || m == "rzi" || m == "rni" || m == "rmi" || m == "rpi" {
				continue
			}
			if m == "f16" || m == "f32" || m == "f64" {
				return m
			}
			return ""
		}
	case "add", "mul", "fma", "div", "rcp", "sqrt", "min", "max":
		switch m := mods[len(mods)-1]; m {
		case "f32", "f64", "f16x2", "bf16x2":
			return m
		}
	case "mma":
		if l.has("f32") {
			return "f32"
		}
	}
	return ""
}

// class says of what kind an instruction's operands are: r a word, d a double word, h a half, p a predicate, i a constant, m
// memory, and how many of them in braces.
func (l line) class() string {
	var b strings.Builder
	for _, a := range l.args {
		if strings.HasPrefix(a, "{") {
			n := strings.Count(a, ",") + 1
			fmt.Fprintf(&b, "%d", n)
			a = strings.TrimPrefix(a, "{")
		}
		switch {
		case strings.HasPrefix(a, "["):
			b.WriteByte('m')
		case strings.HasPrefix(a, "%rd"):
			b.WriteByte('d')
		case strings.HasPrefix(a, "%p"):
			b.WriteByte('p')
		case strings.HasPrefix(a, "%h"):
			b.WriteByte('h')
		case strings.HasPrefix(a, "%"):
			b.WriteByte('r')
		case strings.HasPrefix(a, "$"):
			b.WriteByte('l')
		default:
			b.WriteByte('i')
		}
	}
	if l.guard {
		b.WriteByte('?')
	}
	return b.String()
}

// A pair is an instruction right after another: opcode, the opcode before, and the class of the operands.
type pair string

// pairsOfPTX gives the pairs of a step as it is written.
func pairsOfPTX(body string) map[pair]bool {
	out := map[pair]bool{}
	prev := "loop"
	for _, l := range lines(body, 1) {
		if l.label != "" {
			prev = "label"
			continue
		}
		out[pair(l.op+" after "+prev+" "+l.class())] = true
		prev = l.op
	}
	return out
}

var (
	allowed = regexp.MustCompile(`^(add|sub|mul|mad|fma|div|rem|rcp|sqrt|min|max|neg|not|and|or|xor|lop3|shl|shr|shf|prmt|brev|popc|clz|bfind|bfe|bfi|dp4a|sad|addc|subc|setp|selp|mov|cvt|ld|st|atom|red|bra|bar|shfl|vote|match|redux|mma)(\.|$)`)
	inexact = regexp.MustCompile(`\.(ftz|approx|full|sat|satfinite|rz|rm|rp)(\.|$)`)
)

// lint says where a step is not of the grammar, as far as its text shows it.
func lint(body string, tier int) error {
	met := false // the lanes have met since they may last have parted
	for _, l := range lines(body, 1) {
		bad := func(why string) error { return fmt.Errorf("line %d, %s: %s", l.at, l.op, why) }
		switch {
		case l.label != "":
			met = false
			continue
		case !allowed.MatchString(l.op):
			return bad("not of the grammar")
		case inexact.MatchString(l.op):
			return bad("its result is not the same everywhere")
		}
		switch l.stem() {
		case "add", "sub", "mul", "fma", "div", "rcp", "sqrt":
			if l.float() != "" && !l.has("rn") {
				return bad("floating point without .rn, which the assembler may contract")
			}
			if s := l.stem(); s == "div" || s == "rcp" || s == "sqrt" {
				met = false
			}
		case "rem", "bra":
			met = false
		case "bar":
			met = true
		case "shfl", "vote", "match", "redux", "mma":
			if !met {
				return bad("a collective that no bar.warp.sync comes before")
			}
			if l.stem() != "mma" && l.args[len(l.args)-1] != "0xffffffff" {
				return bad("a collective of less than the warp")
			}
		case "atom":
			if a := l.args[1]; a != "[%own]" && a != "[%scratch]" {
				return bad("an atomic with a result on a word that others may strike")
			}
		}
		if tier < 80 && (l.stem() == "mma" || l.stem() == "redux" || l.has("bf16x2")) {
			return bad("needs sm_80")
		}
	}
	return nil
}
