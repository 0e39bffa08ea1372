package topo

import (
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// Format writes t as topology.conf lines that Parse reads back to the same numbers: each root's leaves, then what is above
// them, and BlockName lines for NVLink domains. Nodes outside the tree have no line.
func (t *Tree) Format() string {
	var b strings.Builder
	var walk func(sw int32)
	walk = func(sw int32) {
		s := &t.Switches[sw]
		if s.Outside {
			return
		}
		for _, c := range s.Children {
			walk(c)
		}
		b.WriteString("SwitchName=" + s.Name)
		if len(s.Children) == 0 {
			b.WriteString(" Nodes=" + list(t.Nodes[s.Lo:s.Hi]))
		} else {
			names := make([]string, len(s.Children))
			for i, c := range s.Children {
				names[i] = t.Switches[c].Name
			}
			b.WriteString(" Switches=" + list(names))
		}
		b.WriteByte('\n')
	}
	for _, sw := range t.tops() {
		walk(sw)
	}
	in := make([][]string, len(t.Domains))
	for i, d := range t.Domain {
		if d != None {
			in[d] = append(in[d], t.Nodes[i])
		}
	}
	for d, name := range t.Domains {
		b.WriteString("BlockName=" + name + " Nodes=" + list(in[d]) + "\n")
	}
	return b.String()
}

// tops is all switches without a parent, those without nodes too, in the order of their leaves.
func (t *Tree) tops() []int32 {
	var out []int32
	for sw := range t.Switches {
		if t.Switches[sw].Parent == None {
			out = append(out, int32(sw))
		}
	}
	slices.SortStableFunc(out, func(a, b int32) int { return int(t.Switches[a].LeafLo - t.Switches[b].LeafLo) })
	return out
}

// list is a hostlist that keeps the names' order: the short form only where that says the same.
func list(names []string) string {
	short := hostlist.Compress(names)
	if back, err := hostlist.Expand(short); err == nil && slices.Equal(back, names) {
		return short
	}
	return strings.Join(names, ",")
}
