package policy

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// Baseline says when what the nodes of a product show becomes what its nodes should show.
type Baseline struct {
	MinNodes int     `json:"min_nodes" yaml:"min_nodes"` // nodes of the product that must show the same …
	Share    float64 `json:"share" yaml:"share"`         // … and that share of all its nodes; both are needed
}

// defaultBaseline: a value that one node in five does not show is no rule; fewer than five nodes are no crowd.
func defaultBaseline() Baseline { return Baseline{MinNodes: 5, Share: 0.8} }

func (v *validator) baseline(b Baseline) {
	atLeast(v, "baseline.min_nodes", b.MinNodes, 2)
	if !(b.Share > 0.5 && b.Share <= 1) {
		v.add("baseline.share", "%v: want a share above 0.5 and not above 1: two values must not both be the rule", b.Share)
	}
}

// Shown is what one node shows.
type Shown struct {
	Node   string
	SKU    string
	Driver string
	Values map[string]int64 // by the policy's path, as nvlink.links; a value that was not read is missing
}

// Learned is what the nodes of one product show.
type Learned struct {
	SKU    string         `json:"sku"`
	Nodes  int            `json:"nodes"`
	Values []LearnedValue `json:"values"` // by path
}

// LearnedValue is what most nodes that show a value show. It holds when enough of them do.
type LearnedValue struct {
	Path   string   `json:"path"`
	Value  string   `json:"value"`
	Nodes  int      `json:"nodes"`            // that show it
	Of     int      `json:"of"`               // nodes that show any value
	Holds  bool     `json:"holds"`            // it is what the product's nodes should show
	Others []string `json:"others,omitempty"` // nodes that show another, MaxOthers at most
}

// MaxOthers bounds how many nodes are named that show another value than most.
const MaxOthers = 32

// driverPath stands for the driver's version, which is learned to be shown and judges nothing: in a rolling upgrade the
// old version is the majority's until it is the minority's.
const driverPath = "inventory.driver"

// Learn gives what the nodes of each product show, by product. It is a pure function of what was reported: the order of
// nodes does not matter, and of two values as common the smaller text counts first.
func Learn(nodes []Shown, b Baseline) []Learned {
	bySKU := map[string][]Shown{}
	for _, n := range nodes {
		if n.SKU != "" {
			bySKU[n.SKU] = append(bySKU[n.SKU], n)
		}
	}
	var out []Learned
	for _, sku := range slices.Sorted(maps.Keys(bySKU)) {
		l := Learned{SKU: sku, Nodes: len(bySKU[sku])}
		tally := map[string]map[string][]string{} // path → value → nodes
		note := func(path, value, node string) {
			if tally[path] == nil {
				tally[path] = map[string][]string{}
			}
			tally[path][value] = append(tally[path][value], node)
		}
		for _, n := range bySKU[sku] {
			for path, v := range n.Values {
				note(path, strconv.FormatInt(v, 10), n.Node)
			}
			if n.Driver != "" {
				note(driverPath, n.Driver, n.Node)
			}
		}
		for _, path := range slices.Sorted(maps.Keys(tally)) {
			l.Values = append(l.Values, most(path, tally[path], b))
		}
		out = append(out, l)
	}
	return out
}

func most(path string, by map[string][]string, b Baseline) LearnedValue {
	v := LearnedValue{Path: path}
	for value, nodes := range by {
		v.Of += len(nodes)
		if c := cmp.Compare(len(nodes), v.Nodes); c > 0 || c == 0 && value < v.Value {
			v.Value, v.Nodes = value, len(nodes)
		}
	}
	v.Holds = v.Nodes >= b.MinNodes && float64(v.Nodes) >= b.Share*float64(v.Of)
	for value, nodes := range by {
		if value != v.Value {
			v.Others = append(v.Others, nodes...)
		}
	}
	slices.Sort(v.Others)
	v.Others = v.Others[:min(len(v.Others), MaxOthers)]
	return v
}

// Set gives what holds of it, for ForNode.
func (l Learned) Set() Set {
	t := map[string]any{}
	for _, v := range l.Values {
		if v.Holds && v.Path != driverPath {
			put(t, v.Path, rawNumber(v.Value))
		}
	}
	var s Set
	if s.take(normal(t)) != nil {
		return Set{}
	}
	return s
}
