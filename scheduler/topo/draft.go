package topo

import (
	"cmp"
	"slices"
)

// A draft is a tree while its lines are still being put together.
type draft struct {
	all    []*vertex
	byName map[string]*vertex

	domains []string         // names of NVLink domains wider than a node
	domain  map[string]int32 // node to its domain
}

// A vertex is a switch or block as its line says it.
type vertex struct {
	name      string
	at        int  // its line
	said      bool // that it has no node
	aggregate bool // made from BlockSizes
	nodes     []string
	below     []string // names of child switches
	parent    *vertex
	children  []*vertex
	height    int
}

func (d *draft) vertex(name string, at int) *vertex {
	v := &vertex{name: name, at: at}
	if d.byName == nil {
		d.byName = map[string]*vertex{}
	}
	d.all, d.byName[name] = append(d.all, v), v
	return v
}

// outside is the line of a vertex that no line names.
const outside = -1

func (d *draft) domainOf(node string) int32 {
	if i, ok := d.domain[node]; ok {
		return i
	}
	return None
}

// addDomain names an NVLink domain and gives it number order by call.
func (d *draft) addDomain(name string, nodes []string) {
	if d.domain == nil {
		d.domain = map[string]int32{}
	}
	for _, n := range nodes {
		if _, taken := d.domain[n]; !taken {
			d.domain[n] = int32(len(d.domains))
		}
	}
	d.domains = append(d.domains, name)
}

// build numbers what hangs below each root, in file order, then the known nodes that no leaf has, each a leaf of its own.
func (d *draft) build(known []string) *Tree {
	t := &Tree{byNode: map[string]int32{}, bySw: map[string]int32{}}
	var leaves, upper []*vertex
	var walk func(v *vertex)
	walk = func(v *vertex) {
		v.height = 0
		for _, c := range v.children {
			walk(c)
			v.height = max(v.height, c.height+1)
		}
		if len(v.children) > 0 {
			upper = append(upper, v)
		} else {
			leaves = append(leaves, v)
		}
	}
	for _, v := range d.all {
		if v.parent == nil {
			walk(v)
		}
	}
	placed := map[string]bool{}
	for _, v := range leaves {
		for _, n := range v.nodes {
			placed[n] = true
		}
	}
	for _, n := range known {
		if !placed[n] {
			placed[n] = true
			leaves = append(leaves, &vertex{nodes: []string{n}, at: outside})
		}
	}
	slices.SortStableFunc(upper, func(a, b *vertex) int { return cmp.Compare(a.height, b.height) })

	number := map[*vertex]int32{}
	for i, v := range leaves {
		number[v] = int32(i)
		lo := int32(len(t.Nodes))
		// Nodes of one NVLink domain lie side by side in their leaf.
		slices.SortStableFunc(v.nodes, func(a, b string) int { return cmp.Compare(d.domainOf(a), d.domainOf(b)) })
		for _, n := range v.nodes {
			if _, twice := t.byNode[n]; twice {
				continue
			}
			t.byNode[n] = int32(len(t.Nodes))
			t.Nodes, t.Leaf = append(t.Nodes, n), append(t.Leaf, int32(i))
			t.Domain = append(t.Domain, d.domainOf(n))
		}
		t.Switches = append(t.Switches, Switch{Name: v.name, Parent: None, Lo: lo, Hi: int32(len(t.Nodes)), LeafLo: int32(i), LeafHi: int32(i) + 1, Outside: v.at == outside})
	}
	t.Domains = d.domains
	t.start = []int32{0, int32(len(leaves))}
	for _, v := range upper {
		id := int32(len(t.Switches))
		number[v] = id
		for len(t.start) <= v.height+1 {
			t.start = append(t.start, id)
		}
		t.start[v.height+1] = id + 1
		sw := Switch{Name: v.name, Height: v.height, Parent: None, AggregateOfBlock: v.aggregate}
		for i, c := range v.children {
			k := number[c]
			sw.Children = append(sw.Children, k)
			cs := &t.Switches[k]
			cs.Parent = id
			if i == 0 {
				sw.Lo, sw.LeafLo = cs.Lo, cs.LeafLo
			}
			sw.Hi, sw.LeafHi = cs.Hi, cs.LeafHi
		}
		t.Switches = append(t.Switches, sw)
	}
	for i, sw := range t.Switches {
		if sw.Name != "" {
			t.bySw[sw.Name] = int32(i)
		}
	}
	return t
}
