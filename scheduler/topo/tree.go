// Package topo knows how nodes hang together: the switch tree above them, the NVLink domains across them, and the links
// between the GPUs inside one.
//
// It reads Slurm's topology.conf in both its forms, tree (SwitchName lines) and block (BlockName lines), and numbers nodes
// and switches so that all below one switch is one range. It names every fault it meets with its line and, like Slurm,
// goes on wherever the file still says something. Source: SchedMD/slurm, topology.conf(5), topology/tree and topology/block.
package topo

// None stands for no switch, no leaf and no domain.
const None int32 = -1

// A Tree is the topology of one fleet. It never changes once built. Nodes are numbered leaf by leaf in the order of a
// walk down the tree, so a switch's nodes, and its leaves, are one range each; the number of a node is its index.
type Tree struct {
	Nodes    []string // names, by index
	Leaf     []int32  // the leaf switch of each node
	Domain   []int32  // the NVLink domain of each node that is wider than the node, or None
	Domains  []string // names of those domains
	Switches []Switch // leaves first, in the order of their nodes; then height 1, then 2, and so on

	start  []int32 // start[h] is the first switch of height h; one more closes the last
	byNode map[string]int32
	bySw   map[string]int32
}

// A Switch is a vertex of the tree. Height 0 is a leaf: it has nodes and no switch below it. Any other is one higher than
// its highest child.
type Switch struct {
	Name             string // empty for a leaf that stands for one node outside the tree
	Height           int
	Parent           int32   // None at the top
	Children         []int32 // empty for a leaf
	Lo, Hi           int32   // its nodes are Lo ≤ i < Hi
	LeafLo, LeafHi   int32   // its leaves are LeafLo ≤ l < LeafHi; a leaf's own number is LeafLo
	Outside          bool    // no file names this node: it stands alone, with no switch above it
	AggregateOfBlock bool    // made from BlockSizes: no line of the file names it
}

// Heights is one more than the height of the highest switch.
func (t *Tree) Heights() int { return len(t.start) - 1 }

// Level is the range of switches of height h, empty where there is none.
func (t *Tree) Level(h int) (lo, hi int32) {
	if h < 0 || h+1 >= len(t.start) {
		return 0, 0
	}
	return t.start[h], t.start[h+1]
}

// Leaves is the number of leaf switches; they are numbered from 0.
func (t *Tree) Leaves() int32 {
	_, hi := t.Level(0)
	return hi
}

// Node is the index of the node named so.
func (t *Tree) Node(name string) (int32, bool) {
	i, ok := t.byNode[name]
	return i, ok
}

// Switch is the number of the switch named so.
func (t *Tree) Switch(name string) (int32, bool) {
	i, ok := t.bySw[name]
	return i, ok
}

// Roots lists the switches without a parent, in node order.
func (t *Tree) Roots() []int32 {
	var roots []int32
	for at := int32(0); int(at) < len(t.Nodes); {
		sw := t.Leaf[at]
		for t.Switches[sw].Parent != None {
			sw = t.Switches[sw].Parent
		}
		roots = append(roots, sw)
		at = t.Switches[sw].Hi
	}
	return roots
}

// Common is the lowest switch above both a and b, or None when no switch joins them.
func (t *Tree) Common(a, b int32) int32 {
	for a != b {
		switch {
		case a == None || b == None:
			return None
		case t.Switches[a].Height <= t.Switches[b].Height && t.Switches[a].Parent != None:
			a = t.Switches[a].Parent
		case t.Switches[b].Parent != None:
			b = t.Switches[b].Parent
		default:
			return None
		}
	}
	return a
}

// Up is the switch of height h or lower, the highest such, above switch sw or sw itself.
func (t *Tree) Up(sw int32, h int) int32 {
	for p := t.Switches[sw].Parent; p != None && t.Switches[p].Height <= h; p = t.Switches[sw].Parent {
		sw = p
	}
	return sw
}

// Flat is the tree of a fleet without a topology: one leaf over all nodes, in the order given.
func Flat(nodes []string) *Tree {
	d := &draft{}
	d.vertex("all", 1).nodes = nodes
	return d.build(nil)
}
