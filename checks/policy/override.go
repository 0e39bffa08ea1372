package policy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// An Override sets some values for some nodes. Where several fit a node they are applied in the order of the file: of two
// that set the same value the later one counts. A map (checks, xid.actions) is merged by key; a list is replaced.
type Override struct {
	Name  string   `json:"name" yaml:"name"`                       // for people, and for the fault that names it
	SKU   []string `json:"sku,omitempty" yaml:"sku,omitempty"`     // products, as MatchSKU reads them; any one will do. Empty: every product
	Nodes []string `json:"nodes,omitempty" yaml:"nodes,omitempty"` // hostlists, as gpu[001-016]; any one will do. Empty: every node
	Set   Set      `json:"set" yaml:"set"`                         // the sections of the top level, with the values to set
}

// fleetOnly names what is not judged on a node, so that no override sets it.
var fleetOnly = map[string]string{
	"version":     "the control plane gives it",
	"baseline":    "it is made of all nodes of a product",
	"certificate": "the fleet's placement goes by it",
	"guard":       "budgets are the fleet's",
	"lifecycle":   "the state machine's deadlines are the fleet's",
	"overrides":   "an override holds no overrides",
}

// overrides reports the faults of each override: of its own form, and of the policy that it makes of the top level. What is
// wrong with the top level already is not told again for each.
func (v *validator) overrides(p Policy) {
	if len(p.Overrides) > maxOverrides {
		v.add("overrides", "%d of them: want %d at most", len(p.Overrides), maxOverrides)
		return
	}
	base := values(p)
	seen := map[string]int{}
	for i, o := range p.Overrides {
		path := fmt.Sprintf("overrides[%d]", i)
		if first, dup := seen[o.Name]; o.Name == "" {
			v.add(path+".name", "want a name, so that people can tell it from others")
		} else if dup {
			v.add(path+".name", "%q: overrides[%d] has that name", o.Name, first)
		} else {
			seen[o.Name] = i
		}
		if len(o.SKU)+len(o.Nodes) == 0 {
			v.add(path, "names no nodes: want sku or nodes; what holds for all stands at the top level")
		}
		for j, s := range o.SKU {
			if len(words(s)) == 0 {
				v.add(fmt.Sprintf("%s.sku[%d]", path, j), "%q: want words of a product's name, as H100 or A100-SXM4", s)
			}
		}
		for j, s := range o.Nodes {
			if names, err := hostlist.Expand(s); err != nil {
				v.add(fmt.Sprintf("%s.nodes[%d]", path, j), "%v", err)
			} else if len(names) == 0 {
				v.add(fmt.Sprintf("%s.nodes[%d]", path, j), "%q names no node", s)
			}
		}
		v.set(p, path+".set", o.Set, base)
	}
}

// SetsNothing is the fault of an override that sets no value.
const SetsNothing = "sets nothing"

// maxOverrides bounds how many there may be; each is matched with every node.
const maxOverrides = 256

func (v *validator) set(p Policy, path string, s Set, base []Fault) {
	if s.Empty() {
		v.add(path, SetsNothing)
		return
	}
	bad := false
	for _, key := range s.Sections() {
		if why, ok := fleetOnly[key]; ok {
			v.add(path+"."+key, "cannot be set by an override: %s", why)
			bad = true
		}
	}
	if bad {
		return
	}
	made, err := p.with(s)
	if err != nil {
		v.add(path, "%v", err)
		return
	}
	for _, f := range values(made) {
		if !slices.Contains(base, f) {
			v.add(path+"."+f.Path, "%s", f.Message)
		}
	}
}

// values lists the faults of p's own values, overrides aside.
func values(p Policy) []Fault {
	v := &validator{}
	v.values(p)
	return v.sorted()
}

func (v *validator) sorted() []Fault {
	slices.SortFunc(v.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return v.faults
}
