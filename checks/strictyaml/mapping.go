package strictyaml

import (
	"encoding"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// entries gives the keys and values of a mapping, each key once. Keys that are not plain text, and keys given twice,
// are faults.
func (d *decoder) entries(n ast.Node, path string) (out []entry, ok bool) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.NullNode:
		return nil, true
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		d.fault(n, path, "%s: want a mapping", describe(n))
		return nil, false
	}
	first := map[string]Position{}
	for _, mv := range values {
		switch mv.Key.(type) {
		case *ast.MergeKeyNode:
			d.fault(mv.Key, path, "merge keys are not read; write the values out")
			continue
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.LiteralNode:
		default:
			d.fault(mv.Key, path, "a key is plain text")
			continue
		}
		key := scalarText(mv.Key)
		if was, dup := first[key]; dup {
			d.fault(mv.Key, join(path, key), "given twice; first in line %d", was.Line)
			continue
		}
		first[key] = position(mv.Key)
		d.lines[join(path, key)] = position(mv.Key)
		out = append(out, entry{key, mv.Key, mv.Value})
	}
	return out, true
}

type entry struct {
	name  string
	key   ast.Node
	value ast.Node
}

func (d *decoder) structure(n ast.Node, v reflect.Value, path string) {
	es, ok := d.entries(n, path)
	if !ok {
		return
	}
	fields := map[string]reflect.Value{}
	names := collect(v, fields, nil)
	for _, e := range es {
		f, known := fields[e.name]
		if !known {
			if near := nearest(e.name, names); near != "" {
				d.fault(e.key, join(path, e.name), "unknown key; did you mean %s?", near)
			} else {
				d.fault(e.key, join(path, e.name), "unknown key; known here: %s", strings.Join(names, ", "))
			}
			continue
		}
		d.value(e.value, f, join(path, e.name))
	}
}

// collect fills fields with the settable fields of v by key, and returns the keys in the order of the type.
func collect(v reflect.Value, fields map[string]reflect.Value, names []string) []string {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Type.Kind() == reflect.Struct && (f.Anonymous && name == "" || strings.Contains(opts, "inline")) {
			names = collect(v.Field(i), fields, names)
			continue
		}
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		if _, shadowed := fields[name]; !shadowed && v.Field(i).CanSet() {
			fields[name] = v.Field(i)
			names = append(names, name)
		}
	}
	return names
}

// dictionary decodes a mapping into a Go map; keys the map held before and the file does not name stay.
func (d *decoder) dictionary(n ast.Node, v reflect.Value, path string) {
	es, ok := d.entries(n, path)
	if !ok || len(es) == 0 {
		return
	}
	out := reflect.MakeMap(v.Type())
	for it := v.MapRange(); it.Next(); {
		out.SetMapIndex(it.Key(), it.Value())
	}
	for _, e := range es {
		at := join(path, e.name)
		key := reflect.New(v.Type().Key()).Elem()
		if !d.key(e, key, at) {
			continue
		}
		val := reflect.New(v.Type().Elem()).Elem()
		if old := out.MapIndex(key); old.IsValid() {
			val.Set(old)
		}
		d.value(e.value, val, at)
		out.SetMapIndex(key, val)
	}
	v.Set(out)
}

// key decodes a mapping's key.
func (d *decoder) key(e entry, k reflect.Value, path string) bool {
	if reflect.PointerTo(k.Type()).Implements(textType) {
		if err := k.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(e.name)); err != nil {
			d.fault(e.key, path, "key: %v", err)
			return false
		}
		return true
	}
	switch k.Kind() {
	case reflect.String:
		k.SetString(e.name)
		return true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x, err := strconv.ParseInt(e.name, 10, 64)
		if err != nil || k.OverflowInt(x) {
			d.fault(e.key, path, "key %q: want a whole number", e.name)
			return false
		}
		k.SetInt(x)
		return true
	}
	d.fault(e.key, path, "keys of type %s cannot be read", k.Type())
	return false
}

// nearest is the known name that name was most likely meant to be, or empty when none is close.
func nearest(name string, known []string) string {
	best, bestDist := "", 1+len(name)/3
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d <= bestDist && (best == "" || d < bestDist) {
			best, bestDist = k, d
		}
	}
	return best
}

// distance counts the letters to change, add or drop to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
