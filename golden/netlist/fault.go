package netlist

import "fmt"

// Result is the pin that a gate drives; 0 and 1 are those that drive it.
const Result = 2

// A Fault is one pin that is stuck at a value, or late to leave it.
type Fault struct {
	Gate  int32
	Pin   uint8
	Value bool
	Late  bool
}

func (f Fault) String() string {
	pin := [3]string{"a", "b", "out"}[f.Pin]
	what := "stuck at"
	if f.Late {
		what = "late to leave"
	}
	v := 0
	if f.Value {
		v = 1
	}
	return fmt.Sprintf("gate %d %s %s %d", f.Gate, pin, what, v)
}

// pins of a gate that carry a wire of their own.
func (n *Netlist) pins(g int) []uint8 {
	switch {
	case g < n.ins+2:
		return nil
	case n.op[g] == opNot:
		return []uint8{0}
	}
	return []uint8{0, 1}
}

func (n *Netlist) from(g int, pin uint8) net {
	if pin == 0 {
		return n.a[g]
	}
	return n.b[g]
}

// single reports whether a net feeds one pin only: then a fault of the pin is one of the net.
func (n *Netlist) single(x net) bool { return len(n.fans[x]) == 1 && !n.isOut[x] }

// Stuck gives the stuck-at faults, of which no two are the same by structure: an AND with an input at 0 is one with its
// output at 0.
func (n *Netlist) Stuck() []Fault { return n.list(false) }

// LateFaults gives the transition faults, each pin slow to rise and slow to fall. Fewer collapse: a late input of an AND is
// not a late output.
func (n *Netlist) LateFaults() []Fault { return n.list(true) }

func (n *Netlist) list(late bool) []Fault {
	var out []Fault
	add := func(g int, pin uint8, v bool) { out = append(out, Fault{int32(g), pin, v, late}) }
	for g := 2; g < len(n.op); g++ {
		for _, pin := range n.pins(g) {
			if n.single(n.from(g, pin)) {
				continue // a fault of the net
			}
			for _, v := range []bool{false, true} {
				if n.op[g] == opNot || !late && (n.op[g] == opAnd && !v || n.op[g] == opOr && v) {
					continue // a fault of the result
				}
				add(g, pin, v)
			}
		}
		// A net's own faults: those that are faults of what it feeds are left to that.
		for _, v := range []bool{false, true} {
			if n.single(net(g)) {
				o := n.op[n.fans[g][0]]
				if o == opNot || !late && (o == opAnd && !v || o == opOr && v) {
					continue
				}
			}
			add(g, Result, v)
		}
	}
	return out
}
