package strictyaml

import (
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// A Partial is a section that may set any of a larger value's keys and keeps only those that the file sets.
type Partial interface {
	// Whole gives a pointer to the larger value. The section is read into it, under all the rules of this package.
	Whole() any
	// Take is told the value that Whole gave, as read, and the keys that the file sets in it: a map for a section, nil
	// for a value. What could not be read is not among them. Its error is a fault of the section.
	Take(whole any, keys map[string]any) error
}

func (d *decoder) partial(n ast.Node, p Partial, path string) {
	before := len(d.err.Faults)
	whole := p.Whole()
	d.value(n, reflect.ValueOf(whole).Elem(), path)
	faulty := map[string]bool{}
	for _, f := range d.err.Faults[before:] {
		faulty[f.Path] = true
	}
	keys, _ := keysOf(n, path, faulty).(map[string]any)
	if err := p.Take(whole, keys); err != nil {
		d.fault(n, path, "%v", err)
	}
}

// keysOf gives the keys of a mapping, as Take wants them, but for those with a fault; nil for any other node.
func keysOf(n ast.Node, path string, faulty map[string]bool) any {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil
	}
	keys := map[string]any{}
	for _, v := range values {
		at := join(path, scalarText(v.Key))
		if _, null := v.Value.(*ast.NullNode); !null && !faulty[at] {
			keys[scalarText(v.Key)] = keysOf(v.Value, at, faulty)
		}
	}
	return keys
}
