package topo

import (
	"maps"
	"slices"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// once keeps each node on the first line that names it, and leaves out names that no known node has.
func (r *reader) once(known []string) {
	exists := make(map[string]bool, len(known))
	for _, n := range known {
		exists[n] = true
	}
	for _, lines := range [][]*vertex{r.all, r.block} {
		first := map[string]*vertex{}
		for _, v := range lines {
			var unknown []string
			again := map[*vertex][]string{}
			v.nodes = slices.DeleteFunc(v.nodes, func(n string) bool {
				switch w := first[n]; {
				case known != nil && !exists[n]:
					unknown = append(unknown, n)
				case w != nil:
					again[w] = append(again[w], n)
				default:
					first[n] = v
					return false
				}
				return true
			})
			if len(unknown) > 0 {
				r.oddf(v.at, "%s: no such node: %s", v.name, hostlist.Compress(unknown))
			}
			for _, w := range slices.SortedFunc(maps.Keys(again), func(a, b *vertex) int { return a.at - b.at }) {
				r.oddf(v.at, "%s is on %s and, since line %d, on %s: the first counts", hostlist.Compress(again[w]), v.name, w.at, w.name)
			}
		}
	}
}

// link joins switches with those they name below them. A switch has one parent: the first that names it.
func (r *reader) link() {
	for _, v := range r.all {
		var missing []string
		for _, name := range v.below {
			c := r.byName[name]
			switch {
			case c == nil:
				missing = append(missing, name)
			case c == v:
				r.errorf(v.at, "switch %s is its own child", v.name)
			case c.parent == v:
				// hosts has said so
			case c.parent != nil:
				r.errorf(v.at, "switch %s is a child of %s and, since line %d, of %s: the first counts", c.name, v.name, c.parent.at, c.parent.name)
			default:
				c.parent = v
				v.children = append(v.children, c)
			}
		}
		if len(missing) > 0 {
			r.errorf(v.at, "switch %s: no such child: %s", v.name, hostlist.Compress(missing))
		}
	}
}

// breakCycles cuts each ring of parents at its first line, which then has no parent.
func (r *reader) breakCycles() {
	state := make(map[*vertex]int, len(r.all)) // walk that met it; 0: none
	for walk, v := range r.all {
		for w := v; w != nil && state[w] != -1; w = w.parent {
			if state[w] == walk+1 {
				first := w
				for x := w.parent; x != w; x = x.parent {
					if x.at < first.at {
						first = x
					}
				}
				r.errorf(first.at, "switch %s is below itself, by way of %s", first.name, first.parent.name)
				first.parent.children = slices.DeleteFunc(first.parent.children, func(c *vertex) bool { return c == first })
				first.parent = nil
				break
			}
			state[w] = walk + 1
		}
		for w := v; w != nil && state[w] != -1; w = w.parent {
			state[w] = -1
		}
	}
}

// shape says what is odd about the whole: empty leaves, several tops, nodes that no leaf has.
func (r *reader) shape(known []string) {
	var roots []string
	placed := map[string]bool{}
	for _, v := range r.all {
		if v.parent == nil {
			roots = append(roots, v.name)
		}
		if len(v.children) == 0 && len(v.nodes) == 0 && !v.said {
			r.oddf(v.at, "%s has no node", v.name)
		}
		for _, n := range v.nodes {
			placed[n] = true
		}
	}
	if len(roots) > 1 {
		r.oddf(0, "no switch is above all: %s have no common parent, and no job spans them", hostlist.Compress(roots))
	}
	if known == nil {
		r.guess()
		return
	}
	var out []string
	for _, n := range known {
		if !placed[n] {
			placed[n] = true
			out = append(out, n)
		}
	}
	if len(out) > 0 {
		r.oddf(0, "on no switch: %s; each stands alone outside the tree", hostlist.Compress(out))
	}
}

// split says which NVLink domains reach over leaves. A gang's tensor-parallel group stays in one leaf, so such a domain
// counts as one part in each.
func (r *reader) split(t *Tree) {
	leaf := make([]int32, len(t.Domains))
	for d := range leaf {
		leaf[d] = None
	}
	said := map[int32]bool{}
	for i, d := range t.Domain {
		switch {
		case d == None:
		case leaf[d] == None:
			leaf[d] = t.Leaf[i]
		case leaf[d] != t.Leaf[i] && !said[d]:
			said[d] = true
			r.oddf(0, "NVLink domain %s reaches over leaves %s and %s: it counts as a part in each", t.Domains[d], t.Switches[leaf[d]].Name, t.Switches[t.Leaf[i]].Name)
		}
	}
}
