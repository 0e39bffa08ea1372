package topo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// maxVertices bounds what one file may name: ten times the switches of the largest fleet.
const maxVertices = 1 << 17

// Parse reads a topology.conf. known lists the nodes that exist, in any order: a name in the file that is not among them
// is left out, and one that the file does not name stands outside the tree; both are faults. With known nil the file
// alone says which nodes there are. The tree is what Slurm would make of the rest, and is nil only when the file names no
// node at all. Faults come in the order of their lines, those of the whole file last.
func Parse(text string, known []string) (*Tree, []Fault) {
	r := &reader{}
	for _, l := range lines(text, r.errorf) {
		r.line(l)
	}
	r.once(known)
	r.blocks()
	r.link()
	r.breakCycles()
	r.shape(known)
	slices.SortStableFunc(r.faults, func(a, b Fault) int { return order(a.Line) - order(b.Line) })
	if !r.any() && len(known) == 0 {
		r.errorf(0, "no node is named")
		return nil, r.faults
	}
	t := r.build(known)
	r.split(t)
	return t, r.faults
}

// order puts faults of the whole file, line 0, last.
func order(line int) int {
	if line == 0 {
		return 1 << 30
	}
	return line
}

// A reader collects lines into a draft tree.
type reader struct {
	draft
	faults  []Fault
	block   []*vertex      // BlockName lines, in order; none of them is in the draft yet
	blockAt map[string]int // their lines, by name
	sizes   []int          // BlockSizes
	sizeAt  int            // its line
}

func (r *reader) errorf(at int, format string, args ...any) {
	r.faults = append(r.faults, Fault{Line: at, Text: fmt.Sprintf(format, args...)})
}

func (r *reader) oddf(at int, format string, args ...any) {
	r.faults = append(r.faults, Fault{Line: at, Odd: true, Text: fmt.Sprintf(format, args...)})
}

func (r *reader) any() bool {
	return slices.ContainsFunc(r.all, func(v *vertex) bool { return len(v.nodes) > 0 })
}

// line takes one logical line in.
func (r *reader) line(l line) {
	get := map[string]string{}
	for _, k := range l.keys {
		switch k.name {
		case "switchname", "blockname", "nodes", "switches", "linkspeed", "blocksizes":
			if _, twice := get[k.name]; twice {
				r.errorf(l.at, "%s stands twice on the line; the first counts", k.name)
				continue
			}
			get[k.name] = k.value
		default:
			r.errorf(l.at, "unknown key %q; known are SwitchName, Nodes, Switches, LinkSpeed, BlockName and BlockSizes", clip(k.name))
		}
	}
	name, isSwitch := get["switchname"]
	block, isBlock := get["blockname"]
	nodes, hasNodes := get["nodes"]
	below, hasBelow := get["switches"]
	if s, ok := get["blocksizes"]; ok {
		r.blockSizes(l.at, s)
	}
	switch {
	case isSwitch && isBlock:
		r.errorf(l.at, "SwitchName and BlockName on one line")
	case isSwitch:
		v := r.named(l.at, "switch", name)
		if v == nil {
			return
		}
		if hasNodes == hasBelow {
			v.said = !hasNodes
			r.errorf(l.at, "switch %s has %s", name, map[bool]string{true: "both child switches and nodes; the nodes are left out", false: "neither child switches nor nodes"}[hasNodes])
		}
		if hasBelow {
			v.below = r.hosts(l.at, "Switches", below)
		} else {
			v.nodes = r.hosts(l.at, "Nodes", nodes)
		}
	case isBlock:
		v := r.named(l.at, "block", block)
		if v == nil {
			return
		}
		if hasBelow {
			r.errorf(l.at, "block %s: a block has nodes, not switches", block)
		}
		if !hasNodes {
			r.errorf(l.at, "block %s has no nodes", block)
		}
		v.nodes, v.said = r.hosts(l.at, "Nodes", nodes), !hasNodes
	case hasNodes || hasBelow:
		r.errorf(l.at, "the line names no switch: SwitchName= or BlockName= is missing")
	}
}

// named makes the vertex of a line, or says why it cannot be.
func (r *reader) named(at int, kind, name string) *vertex {
	switch {
	case name == "":
		r.errorf(at, "the %s has no name", kind)
	case strings.ContainsAny(name, "[],"):
		r.errorf(at, "%s name %q: one line names one %s", kind, clip(name), kind)
	case len(r.all)+len(r.block) >= maxVertices:
		r.errorf(at, "more than %d switches and blocks; %s %s is left out", maxVertices, kind, name)
	case kind == "switch" && r.byName[name] != nil:
		r.errorf(at, "switch %s was named before, on line %d; this line is left out", name, r.byName[name].at)
	case kind == "switch":
		return r.vertex(name, at)
	case r.blockAt[name] != 0:
		r.errorf(at, "block %s was named before, on line %d; this line is left out", name, r.blockAt[name])
	default:
		if r.blockAt == nil {
			r.blockAt = map[string]int{}
		}
		v := &vertex{name: name, at: at}
		r.block, r.blockAt[name] = append(r.block, v), at
		return v
	}
	return nil
}

// hosts reads a hostlist of the line; what it cannot read is a fault and no names.
func (r *reader) hosts(at int, key, list string) []string {
	names, err := hostlist.Expand(list)
	if err != nil {
		r.errorf(at, "%s: %v", key, err)
		return nil
	}
	seen := make(map[string]bool, len(names))
	var twice []string
	names = slices.DeleteFunc(names, func(n string) bool {
		if seen[n] {
			twice = append(twice, n)
			return true
		}
		seen[n] = true
		return false
	})
	if len(twice) > 0 {
		r.oddf(at, "%s names %s more than once", key, hostlist.Compress(twice))
	}
	return names
}
