package nhc

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// contradicts finds an earlier line whose values an item's would overwrite on some node: a policy has one value where NHC
// runs both lines. It gives that line and the value's path; "" for none.
func contradicts(earlier []Item, it Item) (Item, string) {
	if it.Kind != BuiltIn {
		return Item{}, ""
	}
	for _, e := range earlier {
		if e.Kind != BuiltIn {
			continue
		}
		if path := differ(e.Set, it.Set, ""); path != "" && overlap(e.Nodes, it.Nodes) {
			return e, path
		}
	}
	return Item{}, ""
}

// instead has NHC go on with a line that a value for an earlier one stands in the way of.
func (p *planner) instead(l Line, nodes []string, other Item, path string) Item {
	name, _, _ := strings.Cut(l.Check, " ")
	it := p.user(l, name, fmt.Sprintf("NHC goes on with it: policy has one %s, and line %d has set it otherwise", path, other.Line.Number))
	it.Nodes = nodes
	return it
}

// overlap reports whether hostlists have a node in common, as far as can be told; nil is every node.
func overlap(a, b []string) bool {
	if a == nil || b == nil {
		return true
	}
	in, err := hostlist.Expand(strings.Join(a, ","))
	if err != nil {
		return true
	}
	too, err := hostlist.Expand(strings.Join(b, ","))
	return err != nil || slices.ContainsFunc(too, func(name string) bool { return slices.Contains(in, name) })
}

// differ gives the first path at which both have a value, and not the same.
func differ(a, b map[string]any, at string) string {
	for _, k := range sortedKeys(b) {
		was, had := a[k]
		if !had {
			continue
		}
		under, isMap := was.(map[string]any)
		below, isMapToo := b[k].(map[string]any)
		if isMap && isMapToo {
			if path := differ(under, below, at+k+"."); path != "" {
				return path
			}
		} else if !reflect.DeepEqual(was, b[k]) {
			return at + k
		}
	}
	return ""
}
