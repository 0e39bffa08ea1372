// Package hostlist reads and writes Slurm's short form of many node names: gpu[001-003,007] is gpu001, gpu002, gpu003
// and gpu007.
//
// The rules are those of Slurm's hostlist.c: comma, space, tab and newline separate names; each bracket group holds
// numbers and ranges; a number keeps the zeros it is written with; several groups multiply, the left one outermost; text
// may follow a group; order and duplicates stay. Two forms that Slurm takes literally are refused here, since no host has
// a bracket in its name: "node01]" and "node[[01]]". Source: SchedMD/slurm src/common/hostlist.c.
package hostlist

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits. The first is Slurm's MAX_RANGE; the second bounds what one expression may cost: 2.6 times the largest fleet.
const (
	MaxRange = 1 << 16 // hosts in one range or one name's groups
	MaxNames = 1 << 18 // names in one expression
	maxGroup = 8       // bracket groups in one name
	maxDigit = 18      // digits of one number: fits an int64
)

// An Error says where an expression stops being a hostlist.
type Error struct {
	Expr string // as given, cut to 80 bytes
	Pos  int    // byte offset of the fault in the whole expression
	Msg  string
}

func (e *Error) Error() string {
	return fmt.Sprintf("hostlist %q: at byte %d: %s", e.Expr, e.Pos, e.Msg)
}

// Hint shows the form that would have been read.
func (e *Error) Hint() string { return "write nodes as gpu001,gpu002 or gpu[001-016,020]" }

// Status is the HTTP status of a request that carries such an expression.
func (e *Error) Status() int { return 400 }

// Expand lists the names of s in the order written, duplicates kept. The empty string, and what squeue and scontrol print
// for a job without nodes, "(null)" and "None assigned", are no names and no error.
func Expand(s string) ([]string, error) {
	switch strings.TrimSpace(s) {
	case "", "(null)", "None assigned":
		return nil, nil
	}
	p := parser{in: s}
	for p.pos < len(p.in) {
		if isSeparator(p.in[p.pos]) {
			p.pos++
			continue
		}
		if err := p.word(); err != nil {
			return nil, err
		}
	}
	return p.out, nil
}

func isSeparator(c byte) bool { return c == ',' || c == ' ' || c == '\t' || c == '\n' }

// isName reports whether c may stand in a node name. Slurm lets + and : through; quotes, equal signs and control bytes
// never reach a command line from here.
func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.+:", c) >= 0
}

type parser struct {
	in  string
	pos int
	out []string
}

func (p *parser) fault(pos int, format string, args ...any) error {
	expr := p.in
	if len(expr) > 80 {
		expr = expr[:80] + "…"
	}
	return &Error{Expr: expr, Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

// word reads one name with its groups and appends what it stands for.
func (p *parser) word() error {
	names, groups, start := []string{""}, 0, p.pos
	for p.pos < len(p.in) && !isSeparator(p.in[p.pos]) {
		c := p.in[p.pos]
		if c != '[' {
			from := p.pos
			for p.pos < len(p.in) && isName(p.in[p.pos]) {
				p.pos++
			}
			if p.pos == from {
				if c == ']' {
					return p.fault(p.pos, "] without [")
				}
				return p.fault(p.pos, "%q cannot be in a node name", c)
			}
			for i := range names {
				names[i] += p.in[from:p.pos]
			}
			continue
		}
		if groups++; groups > maxGroup {
			return p.fault(p.pos, "more than %d bracket groups in one name", maxGroup)
		}
		items, err := p.group(len(names))
		if err != nil {
			return err
		}
		next := make([]string, 0, len(names)*len(items))
		for _, n := range names {
			for _, it := range items {
				next = append(next, n+it)
			}
		}
		names = next
	}
	if len(p.out)+len(names) > MaxNames {
		return p.fault(start, "more than %d names", MaxNames)
	}
	p.out = append(p.out, names...)
	return nil
}

// group reads [items] and returns them as text. before is how many names stand to its left: their product is bounded
// before anything is built.
func (p *parser) group(before int) ([]string, error) {
	open := p.pos
	length := strings.IndexByte(p.in[open:], ']')
	if length < 0 {
		return nil, p.fault(open, "[ without ]")
	}
	p.pos = open + length + 1
	var items []string
	at := open + 1
	for part := range strings.SplitSeq(p.in[open+1:open+length], ",") {
		lo, hi, width, msg := span(part)
		if msg != "" {
			return nil, p.fault(at, "%s", msg)
		}
		if total := (int64(len(items)) + hi - lo + 1) * int64(before); total > MaxRange && before > 1 || total > MaxNames {
			return nil, p.fault(at, "more than %d names from one group", MaxRange)
		}
		for n := lo; n <= hi; n++ {
			items = append(items, pad(n, width))
		}
		at += len(part) + 1
	}
	return items, nil
}

// span reads "7", "007" or "001-016". msg says what is wrong with it.
func span(s string) (lo, hi int64, width int, msg string) {
	first, last, ranged := strings.Cut(s, "-")
	if !digits(first) || ranged && !digits(last) {
		if s == "" {
			return 0, 0, 0, "empty element in brackets"
		}
		return 0, 0, 0, fmt.Sprintf("%q in brackets is neither a number nor a range", s)
	}
	if len(first) > maxDigit || len(last) > maxDigit {
		return 0, 0, 0, fmt.Sprintf("a number in brackets has more than %d digits", maxDigit)
	}
	lo, _ = strconv.ParseInt(first, 10, 64) // digits only and short enough: cannot fail
	hi = lo
	if ranged {
		hi, _ = strconv.ParseInt(last, 10, 64)
	}
	switch {
	case hi < lo:
		return 0, 0, 0, fmt.Sprintf("range %q runs down", s)
	case hi-lo+1 > MaxRange:
		return 0, 0, 0, fmt.Sprintf("range %q holds more than %d hosts", s, MaxRange)
	}
	return lo, hi, len(first), ""
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func pad(n int64, width int) string {
	s := strconv.FormatInt(n, 10)
	if len(s) >= width {
		return s
	}
	return strings.Repeat("0", width-len(s)) + s
}
