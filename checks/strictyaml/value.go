package strictyaml

import (
	"encoding"
	"reflect"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"
)

var (
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
	partialType  = reflect.TypeFor[Partial]()
	durationType = reflect.TypeFor[time.Duration]()
)

// value decodes n into v and records where it stands.
func (d *decoder) value(n ast.Node, v reflect.Value, path string) {
	if _, seen := d.lines[path]; path != "" && (!seen || isScalar(n)) {
		d.lines[path] = position(n) // of a section its key, of a value the value itself
	}
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode:
		d.fault(n, path, "anchors and aliases are not read; write the value out")
		return
	case *ast.TagNode, *ast.DirectiveNode:
		d.fault(n, path, "tags and directives are not read")
		return
	}
	if v.Kind() == reflect.Pointer {
		if _, null := n.(*ast.NullNode); null {
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(n, v.Elem(), path)
		return
	}
	if reflect.PointerTo(v.Type()).Implements(partialType) {
		d.partial(n, v.Addr().Interface().(Partial), path)
		return
	}
	if reflect.PointerTo(v.Type()).Implements(textType) {
		if s, ok := d.scalar(n, path, "a value"); ok {
			if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
				d.fault(n, path, "%v", err)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.dictionary(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	case reflect.Interface:
		if v.NumMethod() > 0 {
			d.fault(n, path, "values of type %s cannot be read", v.Type())
			return
		}
		d.anything(n, v, path)
	default:
		d.plain(n, v, path)
	}
}

func isScalar(n ast.Node) bool {
	switch n.(type) {
	case *ast.NullNode, *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
		return false
	}
	return true
}

// scalar is the text of a scalar; anything else is a fault.
func (d *decoder) scalar(n ast.Node, path, want string) (string, bool) {
	if !isScalar(n) {
		d.fault(n, path, "%s: want %s", describe(n), want)
		return "", false
	}
	return scalarText(n), true
}

// plain decodes strings, numbers and truth values.
func (d *decoder) plain(n ast.Node, v reflect.Value, path string) {
	if v.Type() == durationType {
		if s, ok := d.scalar(n, path, "a duration, as 30s or 12h"); ok {
			t, err := time.ParseDuration(s)
			if err != nil {
				d.fault(n, path, "duration %q: want a number and a unit, as 30s or 12h", s)
				return
			}
			v.SetInt(int64(t))
		}
		return
	}
	var want string
	switch v.Kind() {
	case reflect.Bool:
		want = "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		want = "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		want = "a whole number, not below 0"
	case reflect.Float32, reflect.Float64:
		want = "a number"
	case reflect.String:
		want = "text"
	default:
		d.fault(n, path, "values of type %s cannot be read", v.Type())
		return
	}
	s, ok := d.scalar(n, path, want)
	if !ok {
		return
	}
	bad := func() { d.fault(n, path, "%s: want %s", describe(n), want) }
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			bad()
			return
		}
		v.SetBool(b.Value)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x, ok := wholeNumber(n)
		if !ok || v.OverflowInt(x) {
			bad()
			return
		}
		v.SetInt(x)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		x, ok := positiveNumber(n)
		if !ok || v.OverflowUint(x) {
			bad()
			return
		}
		v.SetUint(x)
	default:
		x, err := strconv.ParseFloat(s, v.Type().Bits())
		switch n.(type) {
		case *ast.IntegerNode, *ast.FloatNode:
		default:
			bad()
			return
		}
		if err != nil {
			bad()
			return
		}
		v.SetFloat(x)
	}
}

func wholeNumber(n ast.Node) (int64, bool) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch x := i.Value.(type) {
	case int64:
		return x, true
	case uint64:
		return int64(x), x < 1<<63
	}
	return 0, false
}

func positiveNumber(n ast.Node) (uint64, bool) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch x := i.Value.(type) {
	case int64:
		return uint64(x), x >= 0
	case uint64:
		return x, true
	}
	return 0, false
}

// list decodes a sequence into a fresh slice; one without items gives nil, so that there is one empty list.
func (d *decoder) list(n ast.Node, v reflect.Value, path string) {
	if _, null := n.(*ast.NullNode); null {
		return
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fault(n, path, "%s: want a list", describe(n))
		return
	}
	if len(seq.Values) == 0 {
		v.SetZero()
		return
	}
	out := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, item := range seq.Values {
		d.value(item, out.Index(i), path+"["+strconv.Itoa(i)+"]")
	}
	v.Set(out)
}

// anything decodes into an interface: maps by text, lists, text, numbers and truth values.
func (d *decoder) anything(n ast.Node, v reflect.Value, path string) {
	var into reflect.Value
	switch n := n.(type) {
	case *ast.NullNode:
		return
	case *ast.MappingNode, *ast.MappingValueNode:
		into = reflect.New(reflect.TypeFor[map[string]any]()).Elem()
	case *ast.SequenceNode:
		into = reflect.New(reflect.TypeFor[[]any]()).Elem()
	case *ast.BoolNode:
		into = reflect.New(reflect.TypeFor[bool]()).Elem()
	case *ast.FloatNode:
		into = reflect.New(reflect.TypeFor[float64]()).Elem()
	case *ast.IntegerNode:
		into = reflect.New(reflect.TypeFor[int64]()).Elem()
		if _, fits := wholeNumber(n); !fits {
			into = reflect.New(reflect.TypeFor[uint64]()).Elem()
		}
	default:
		into = reflect.New(reflect.TypeFor[string]()).Elem()
	}
	d.value(n, into, path)
	v.Set(into)
}
