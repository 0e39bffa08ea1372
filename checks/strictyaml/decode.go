// Package strictyaml reads a YAML file into Go values and reports every fault in it at once.
//
// It knows one dialect: mappings, sequences and scalars in one document. An unknown key, a key given twice, a value of
// the wrong type, an anchor, an alias, a merge key and a tag are faults. Keys are matched with `yaml:"name"` tags; a
// field without a tag goes by its name in lower case. A type that has UnmarshalText reads its own scalars. A value the
// file leaves out, and a section it leaves empty, keeps what into held before.
package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// MaxSize is the largest file that is read, in bytes. A file that people write is far smaller, and the parser's time grows
// with the square of it: a second or two at this size.
const MaxSize = 128 << 10

// maxDepth bounds nesting. It keeps the parser, which recurses, within its stack.
const maxDepth = 200

// Decode reads data into the value that into points to. The error is an *Error that holds every fault found; file is
// only the name it gives. After an error the value is not to be used.
func Decode(file string, data []byte, into any) error {
	_, err := DecodeWithLines(file, data, into)
	return err
}

// DecodeWithLines is Decode, and says where each value stood. The lines are there after an error too, as far as the
// file could be parsed.
func DecodeWithLines(file string, data []byte, into any) (Lines, error) {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return nil, fmt.Errorf("strictyaml: decode %s into %T: want a pointer", file, into)
	}
	d := &decoder{err: &Error{File: file}, lines: Lines{}}
	body, ok := d.parse(data)
	if ok && body != nil {
		d.value(body, v.Elem(), "")
	}
	return d.lines, d.err.Err()
}

type decoder struct {
	err   *Error
	lines Lines
}

// parse gives the body of the one document in data; nil for an empty file.
func (d *decoder) parse(data []byte) (body ast.Node, ok bool) {
	if len(data) > MaxSize {
		d.err.Add(0, 0, "", "%d bytes: more than the %d that are read", len(data), MaxSize)
		return nil, false
	}
	if line, deep := tooDeep(data); deep {
		d.err.Add(line, 1, "", "nested more than %d deep", maxDepth)
		return nil, false
	}
	defer func() {
		if r := recover(); r != nil { // the parser's own fault, on input it did not foresee
			d.err.Add(0, 0, "", "not YAML that can be read: %v", r)
			body, ok = nil, false
		}
	}()
	f, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
			p := at.GetToken().Position
			d.err.Add(p.Line, p.Column, "", "%s", at.GetMessage())
		} else {
			d.err.Add(0, 0, "", "%v", err)
		}
		return nil, false
	}
	for _, doc := range f.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType:
		case body == nil:
			body = doc.Body
		default:
			d.fault(doc.Body, "", "a second document; the file holds one")
		}
	}
	return body, true
}

// tooDeep finds nesting that no file written by people has, before the parser recurses into it. It counts flow brackets
// wherever they stand and compact block entries ("- - - a") at the start of a line, so it may see more than there is.
func tooDeep(data []byte) (line int, deep bool) {
	depth, line := 0, 1
	entries, atStart := 0, true
	for _, c := range data {
		switch c {
		case '\n':
			line++
			entries, atStart = 0, true
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		case '-', '?', ':':
			if atStart {
				entries++
			}
		case ' ', '\t', '!', '&':
		default:
			atStart = false
		}
		if depth > maxDepth || entries > maxDepth {
			return line, true
		}
	}
	return 0, false
}

func (d *decoder) fault(n ast.Node, path, format string, args ...any) {
	p := position(n)
	d.err.Add(p.Line, p.Column, path, format, args...)
}

func position(n ast.Node) Position {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key // a block mapping's own token is its first colon
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		n = m.Key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return Position{t.Position.Line, t.Position.Column}
	}
	return Position{}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// describe says in words what a node is.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	default:
		text := scalarText(n)
		if len(text) > 40 {
			text = strings.ToValidUTF8(text[:40], "") + "…"
		}
		return fmt.Sprintf("%q", text)
	}
}

// scalarText is a scalar as the file writes it, quotes aside.
func scalarText(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	default:
		if t := n.GetToken(); t != nil {
			return t.Value
		}
		return ""
	}
}
