package nhc

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Mask says on which hosts a line holds.
type Mask struct {
	Text    string
	Not     bool // all but those
	Form    Form
	Pattern string   // without !, and without the signs around it
	Names   []string // of ranges and of a glob without wildcards: as hostlists, when nothing is wrong with them
	Note    string   // what to look at twice; empty for nothing
	Fault   string   // why NHC does not read it as it looks; empty for nothing

	re *regexp.Regexp // of a glob or a regular expression
}

// A Form is how a mask is written.
type Form int

const (
	Glob Form = iota
	Regexp
	Ranges
)

// Every reports whether the mask is every host.
func (m Mask) Every() bool { return m.Fault == "" && m.Form == Glob && m.Pattern == "*" && !m.Not }

var (
	// NHC's own RANGE_MATCH_REGEXP1 and 2.
	oneName  = regexp.MustCompile(`^[-a-zA-Z0-9_]+[0-9]+[-.a-zA-Z0-9]*$`)
	oneRange = regexp.MustCompile(`^([-a-zA-Z0-9_]+)\[([0-9]+)-([0-9]+)\]([-.a-zA-Z0-9]*)$`)
)

func parseMask(text string) Mask {
	m := Mask{Text: text, Pattern: text}
	if rest, ok := strings.CutPrefix(text, "!"); ok {
		m.Not, m.Pattern = true, rest
	}
	around := func(a, b byte) bool {
		p := m.Pattern
		return len(p) >= 2 && p[0] == a && p[len(p)-1] == b
	}
	switch {
	case around('/', '/'):
		m.Form, m.Pattern = Regexp, m.Pattern[1:len(m.Pattern)-1]
		re, err := regexp.Compile(m.Pattern)
		if err != nil {
			m.Fault = fmt.Sprintf("the regular expression is not understood: %v", err)
		}
		m.re = re
	case around('{', '}'):
		m.Form, m.Pattern = Ranges, m.Pattern[1:len(m.Pattern)-1]
		m.ranges()
	case around('%', '%'):
		m.Fault = "an external command decides which hosts it is for"
	default:
		m.re, m.Fault = globRegexp(m.Pattern)
		if !strings.ContainsAny(m.Pattern, `*?[\`) && m.Pattern != "" {
			m.Names = []string{m.Pattern}
		}
	}
	return m
}

// ranges looks at each item. NHC cuts at every comma, brackets or not, and gives up at the first item that it does not
// read: a comma within brackets, or two ranges in one name.
func (m *Mask) ranges() {
	for item := range strings.SplitSeq(m.Pattern, ",") {
		if !oneName.MatchString(item) && !oneRange.MatchString(item) {
			m.Fault = fmt.Sprintf("NHC does not read the range at %q: commas within brackets, several brackets in a name and names without a number are not of its grammar, and it runs the line on no host that comes after", item)
			m.Names = nil
			return
		}
		m.Names = append(m.Names, normal(item))
	}
	if strings.Count(m.Pattern, "[") > 1 {
		m.Note = "look at the mask twice: NHC reads several bracket groups only item by item, and not at all before 1.2.2"
	}
}

// normal writes a range as a hostlist: the smaller number first, both as wide as NHC takes them.
func normal(item string) string {
	r := oneRange.FindStringSubmatch(item)
	if r == nil {
		return item
	}
	low, high := r[2], r[3]
	width := len(low)
	if len(low) < len(high) {
		width = len(high)
	}
	if less(high, low) {
		low, high = high, low
	}
	pad := func(s string) string {
		s = strings.TrimLeft(s, "0")
		if n := width - len(s); n > 0 {
			s = strings.Repeat("0", n) + s
		}
		return s
	}
	return fmt.Sprintf("%s[%s-%s]%s", r[1], pad(low), pad(high), r[4])
}

// less compares whole numbers of any length.
func less(a, b string) bool {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// Match reports whether NHC would run the line on the host. A mask that NHC does not read matches none.
func (m Mask) Match(host string) bool {
	if m.Fault != "" {
		return false
	}
	in := false
	if m.Form == Ranges {
		for item := range strings.SplitSeq(m.Pattern, ",") {
			if in = inRange(item, host); in {
				break
			}
		}
	} else {
		in = m.re.MatchString(host)
	}
	return in != m.Not
}

func inRange(item, host string) bool {
	r := oneRange.FindStringSubmatch(item)
	if r == nil {
		return item == host
	}
	number, ok := strings.CutPrefix(host, r[1])
	if !ok {
		return false
	}
	if number, ok = strings.CutSuffix(number, r[4]); !ok {
		return false
	}
	low, high, width := r[2], r[3], len(r[2])
	if len(low) < len(high) {
		width = len(high)
	}
	if less(high, low) {
		low, high = high, low
	}
	if number == "" || strings.Trim(number, "0123456789") != "" || len(number) != width {
		return false
	}
	return !less(number, low) && !less(high, number)
}

// globRegexp turns a glob into a regular expression. bash's extended patterns are not read.
func globRegexp(glob string) (*regexp.Regexp, string) {
	var b strings.Builder
	b.WriteString("^(?s:")
	for i := 0; i < len(glob); i++ {
		c := glob[i]
		if strings.IndexByte("?*+@!", c) >= 0 && i+1 < len(glob) && glob[i+1] == '(' {
			return nil, fmt.Sprintf("the extended glob at %q is not understood", glob[i:])
		}
		switch c {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		case '\\':
			if i++; i < len(glob) {
				b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
			}
		case '[':
			end := i + 1
			if end < len(glob) && (glob[end] == '!' || glob[end] == '^') {
				end++
			}
			if end < len(glob) && glob[end] == ']' {
				end++
			}
			for end < len(glob) && glob[end] != ']' {
				end++
			}
			if end >= len(glob) { // no set: a bracket
				b.WriteString(`\[`)
				continue
			}
			set := glob[i+1 : end]
			b.WriteByte('[')
			if set[0] == '!' || set[0] == '^' {
				b.WriteByte('^')
				set = set[1:]
			}
			b.WriteString(strings.NewReplacer(`\`, `\\`, `]`, `\]`, `[`, `\[`).Replace(set))
			b.WriteByte(']')
			i = end
		default:
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
	}
	b.WriteString(")$")
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Sprintf("the glob %q is not understood: %v", glob, err)
	}
	return re, ""
}

// size reads a size of NHC's: a number of KiB, or one with k, m, g, t, p or e. In bytes.
func size(s string) (uint64, bool) {
	s = strings.TrimRight(s, "bB")
	shift := 10
	if n := len(s); n > 0 {
		if i := strings.IndexByte("kmgtpe", s[n-1]|0x20); i >= 0 && (s[n-1] < '0' || s[n-1] > '9') {
			shift, s = 10*(i+1), s[:n-1]
		}
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || v > ^uint64(0)>>shift {
		return 0, false
	}
	return v << shift, true
}
