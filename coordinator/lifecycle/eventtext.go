package lifecycle

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The text form of an event, in history and in the test files alike:
//
//	hard_fault at=2026-11-29T20:11:03Z check=xid code=79 kind=gpu gpu=3 action=reboot reason="fell off the bus"
//
// A name, then key=value pairs. A value is a bare word, a Go string in quotes, or a list of such pairs in parentheses;
// a key may come more than once. What has its zero value, or the value that the event's name implies, is left out.

// A codec writes a record's fields as text or reads them back: one description serves both ways.
type codec struct {
	writing bool
	out     strings.Builder
	in      []pair
	err     error
}

// A pair is one key with its value, quotes and parentheses taken off.
type pair struct {
	key, value string
	nested     bool
	used       bool
}

func (c *codec) fail(key string, err error) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: %w", key, err)
	}
}

func (c *codec) put(key, value string) {
	if c.out.Len() > 0 {
		c.out.WriteByte(' ')
	}
	c.out.WriteString(key)
	c.out.WriteByte('=')
	c.out.WriteString(value)
}

// take returns the next unused value of key.
func (c *codec) take(key string, nested bool) (string, bool) {
	for i := range c.in {
		p := &c.in[i]
		if p.key == key && !p.used {
			p.used = true
			if p.nested != nested {
				c.fail(key, fmt.Errorf("value %q: parentheses %s", p.value, map[bool]string{true: "wanted", false: "not wanted"}[nested]))
			}
			return p.value, true
		}
	}
	return "", false
}

func (c *codec) text(key string, v *string) {
	if c.writing {
		if *v != "" {
			c.put(key, word(*v))
		}
		return
	}
	if s, ok := c.take(key, false); ok {
		*v = s
	}
}

func (c *codec) texts(key string, vs *[]string) {
	if c.writing {
		for _, v := range *vs {
			c.put(key, word(v))
		}
		return
	}
	for {
		s, ok := c.take(key, false)
		if !ok {
			return
		}
		*vs = append(*vs, s)
	}
}

func (c *codec) time(key string, v *time.Time) {
	if c.writing {
		if !v.IsZero() {
			c.put(key, v.UTC().Format(time.RFC3339Nano))
		}
		return
	}
	if s, ok := c.take(key, false); ok {
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			c.fail(key, err)
		}
		*v = t.UTC()
	}
}

func (c *codec) number(key string, v *int) {
	if c.writing {
		if *v != 0 {
			c.put(key, strconv.Itoa(*v))
		}
		return
	}
	if s, ok := c.take(key, false); ok {
		n, err := strconv.Atoi(s)
		if err != nil {
			c.fail(key, err)
		}
		*v = n
	}
}

func (c *codec) optional(key string, v **int) {
	if c.writing {
		if *v != nil {
			c.put(key, strconv.Itoa(**v))
		}
		return
	}
	if s, ok := c.take(key, false); ok {
		n, err := strconv.Atoi(s)
		if err != nil {
			c.fail(key, err)
		}
		*v = &n
	}
}

func (c *codec) flag(key string, v *bool, implied bool) {
	if c.writing {
		if *v != implied {
			c.put(key, map[bool]string{true: "yes", false: "no"}[*v])
		}
		return
	}
	*v = implied
	if s, ok := c.take(key, false); ok {
		switch s {
		case "yes":
			*v = true
		case "no":
			*v = false
		default:
			c.fail(key, fmt.Errorf("%q: want yes or no", s))
		}
	}
}

// enum carries a type that writes itself as text, such as a Verdict.
func enum[T comparable, P interface {
	*T
	MarshalText() ([]byte, error)
	UnmarshalText([]byte) error
}](c *codec, key string, v P, implied T) {
	if c.writing {
		if *v != implied {
			b, err := v.MarshalText()
			if err != nil {
				c.fail(key, err)
			}
			c.put(key, word(string(b)))
		}
		return
	}
	*v = implied
	if s, ok := c.take(key, false); ok {
		if err := v.UnmarshalText([]byte(s)); err != nil {
			c.fail(key, err)
		}
	}
}

// group carries a record in parentheses.
func (c *codec) group(key string, fields func(*codec)) (present bool) {
	if c.writing {
		in := &codec{writing: true}
		fields(in)
		if in.err != nil {
			c.fail(key, in.err)
		}
		c.put(key, "("+in.out.String()+")")
		return true
	}
	s, ok := c.take(key, true)
	if !ok {
		return false
	}
	ps, err := pairs(s)
	if err != nil {
		c.fail(key, err)
		return true
	}
	in := &codec{in: ps}
	fields(in)
	in.rest()
	if in.err != nil {
		c.fail(key, in.err)
	}
	return true
}

// groups carries a list of records.
func groups[T any](c *codec, key string, vs *[]T, fields func(*T, *codec)) {
	if c.writing {
		for i := range *vs {
			c.group(key, func(in *codec) { fields(&(*vs)[i], in) })
		}
		return
	}
	for {
		var v T
		if !c.group(key, func(in *codec) { fields(&v, in) }) {
			return
		}
		*vs = append(*vs, v)
	}
}

// rest makes every key that nobody asked for an error.
func (c *codec) rest() {
	for _, p := range c.in {
		if !p.used {
			c.fail(p.key, fmt.Errorf("no such key here, or given twice"))
		}
	}
}

// word writes s bare where nothing in it could be misread, and quoted otherwise.
func word(s string) string {
	if s == "" {
		return `""`
	}
	for _, r := range s {
		if r <= ' ' || r > '~' || strings.ContainsRune(`"'()=\`+"`", r) {
			return strconv.Quote(s)
		}
	}
	return s
}

// pairs cuts "key=value key=(key=value …) …" apart.
func pairs(s string) ([]pair, error) {
	var ps []pair
	for s = strings.TrimLeft(s, " "); s != ""; s = strings.TrimLeft(s, " ") {
		key, rest, ok := strings.Cut(s, "=")
		if !ok || key == "" || strings.ContainsAny(key, " \"()") {
			return nil, fmt.Errorf("at %q: want key=value", clip(s))
		}
		p := pair{key: key}
		switch {
		case strings.HasPrefix(rest, `"`):
			q, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, fmt.Errorf("at %q: unfinished quote", clip(s))
			}
			p.value, _ = strconv.Unquote(q) // QuotedPrefix has found it well formed
			s = rest[len(q):]
		case strings.HasPrefix(rest, "("):
			n, err := closing(rest)
			if err != nil {
				return nil, fmt.Errorf("at %q: %w", clip(s), err)
			}
			p.value, p.nested = rest[1:n], true
			s = rest[n+1:]
		default:
			n := strings.IndexByte(rest, ' ')
			if n < 0 {
				n = len(rest)
			}
			p.value, s = rest[:n], rest[n:]
			if strings.ContainsAny(p.value, `"()`) {
				return nil, fmt.Errorf("at %q: quote the value", clip(key+"="+p.value))
			}
		}
		if s != "" && s[0] != ' ' {
			return nil, fmt.Errorf("at %q: want a space", clip(s))
		}
		ps = append(ps, p)
	}
	return ps, nil
}

// closing finds the parenthesis that closes the one s starts with, passing over quoted text.
func closing(s string) (int, error) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			q, err := strconv.QuotedPrefix(s[i:])
			if err != nil {
				return 0, fmt.Errorf("unfinished quote")
			}
			i += len(q) - 1
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("unfinished parenthesis")
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
