package dcgm

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// An object is a JSON object as far as it could be read.
type object struct {
	members []member
	whole   bool // it was read to its end
}

type member struct {
	key   string
	value any // *object, []any, string, number, bool or nil
}

// number is a JSON number as written.
type number string

func (o *object) get(key string) any {
	for i := len(o.members) - 1; i >= 0; i-- { // of two the later one counts
		if o.members[i].key == key {
			return o.members[i].value
		}
	}
	return nil
}

// maxDepth bounds how deep values may be nested. The diagnostic's own output is 9 deep.
const maxDepth = 64

// A looseReader reads JSON that may be cut short, may have commas too many, and may be followed by anything. A scalar that the
// end of the text cuts is dropped; of an object or array that is cut, what was whole is kept.
type looseReader struct {
	s     string
	i     int
	depth int
	cut   bool // the text ended within the value
	bad   int  // where it stopped being JSON; -1
}

// readObject reads the object that begins at s[at:], and says where it ends.
func readObject(s string, at int) (o *object, end int, cut bool, bad int) {
	r := looseReader{s: s, i: at, bad: -1}
	o, _ = r.object().(*object)
	return o, r.i, r.cut, r.bad
}

func (r *looseReader) stopped() bool { return r.cut || r.bad >= 0 }

func (r *looseReader) fail() {
	if r.i >= len(r.s) {
		r.cut = true
	} else if r.bad < 0 {
		r.bad = r.i
	}
}

func (r *looseReader) space() {
	for r.i < len(r.s) && strings.IndexByte(" \t\r\n", r.s[r.i]) >= 0 {
		r.i++
	}
}

// next skips white space and reports whether c follows, which it then takes.
func (r *looseReader) next(c byte) bool {
	r.space()
	if r.i < len(r.s) && r.s[r.i] == c {
		r.i++
		return true
	}
	return false
}

func (r *looseReader) value() (v any, ok bool) {
	r.space()
	if r.i >= len(r.s) || r.depth >= maxDepth {
		r.fail()
		return nil, false
	}
	switch c := r.s[r.i]; {
	case c == '{':
		return r.object(), true
	case c == '[':
		return r.array(), true
	case c == '"':
		return r.text()
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	for _, w := range []struct {
		word  string
		value any
	}{{"null", nil}, {"true", true}, {"false", false}} {
		rest := r.s[r.i:]
		switch {
		case strings.HasPrefix(rest, w.word):
			r.i += len(w.word)
			return w.value, true
		case strings.HasPrefix(w.word, rest):
			r.i = len(r.s)
		}
	}
	r.fail()
	return nil, false
}

func (r *looseReader) object() any {
	o := &object{}
	r.i++ // the brace
	r.depth++
	defer func() { r.depth-- }()
	for {
		for r.next(',') { // one too many, or the one between
		}
		if r.next('}') {
			o.whole = true
			return o
		}
		if r.i >= len(r.s) || r.s[r.i] != '"' {
			r.fail()
			return o
		}
		k, ok := r.text()
		if !ok {
			return o
		}
		if !r.next(':') {
			r.fail()
			return o
		}
		v, ok := r.value()
		if ok {
			o.members = append(o.members, member{k.(string), v})
		}
		if r.stopped() {
			return o
		}
	}
}

func (r *looseReader) array() any {
	list := []any{}
	r.i++ // the bracket
	r.depth++
	defer func() { r.depth-- }()
	for {
		for r.next(',') {
		}
		if r.next(']') {
			return list
		}
		v, ok := r.value()
		if ok {
			list = append(list, v)
		}
		if r.stopped() || !ok {
			return list
		}
	}
}

// text reads a string. Escapes that are not JSON's are taken as they stand, as are line breaks.
func (r *looseReader) text() (any, bool) {
	var b strings.Builder
	r.i++ // the quote
	for r.i < len(r.s) {
		c := r.s[r.i]
		r.i++
		switch c {
		case '"':
			return b.String(), true
		case '\\':
			if r.i >= len(r.s) {
				break
			}
			e := r.s[r.i]
			r.i++
			switch e {
			case 'n', 'r':
				b.WriteByte('\n')
			case 't', 'b', 'f':
				b.WriteByte(' ')
			case 'u':
				if n := r.i + 4; n <= len(r.s) {
					if code, err := strconv.ParseUint(r.s[r.i:n], 16, 32); err == nil {
						r.i = n
						b.WriteRune(rune(code)) // a surrogate becomes U+FFFD
						continue
					}
				}
				b.WriteRune(utf8.RuneError)
			default:
				b.WriteByte(e)
			}
		default:
			b.WriteByte(c)
		}
	}
	r.cut = true
	return nil, false
}

func (r *looseReader) number() (any, bool) {
	start := r.i
	for r.i < len(r.s) && strings.IndexByte("+-0123456789.eE", r.s[r.i]) >= 0 {
		r.i++
	}
	if r.i == len(r.s) { // more digits may have followed
		r.cut = true
		return nil, false
	}
	return number(r.s[start:r.i]), true
}
