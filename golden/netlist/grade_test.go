package netlist

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestImports(t *testing.T) { importrules.Pure(t, "github.com/assay-gpu/assay/golden/ref") }

func drawn(m Model, n *Netlist, count int, seed uint64) []uint64 {
	r, ports := &random{seed}, len(n.In)
	ops := make([]uint64, count*ports)
	for i := range count {
		op := ops[i*ports:][:ports]
		m.draw(r, op)
		for p := range op {
			if w := n.In[p].Width; w < 64 {
				op[p] &= 1<<w - 1
			}
		}
	}
	return ops
}

// The grader says of a fault what running the whole unit with that fault says; and what is proven redundant never shows.
func TestGraderAgreesWithTheBrokenUnit(t *testing.T) {
	r := &random{9}
	for _, m := range Models() {
		n := m.Build()
		u := NewUnit(n)
		for k, faults := range [][]Fault{n.Stuck(), n.LateFaults()} {
			ops := drawn(m, n, 64, uint64(k))
			right := u.Compute(ops)
			g := NewGrader(n, faults)
			g.Feed(ops, nil)
			shown, agreed := 0, 0
			for range 60 {
				i := int(r.next() % uint64(len(faults)))
				first := 0
				if faults[i].Late {
					first = 1 // the grader knows no operation before the first
				}
				differs := false
				for j, v := range u.ComputeWith(faults[i], ops) {
					differs = differs || j >= first && v != right[j]
				}
				if differs != g.Found(i) {
					t.Errorf("%s: %v: the broken unit differs: %v, the grader says %v", m.Name, faults[i], differs, g.Found(i))
				}
				if differs {
					shown++
					if n.Redundant(faults[i]) {
						t.Errorf("%s: %v is called redundant, and shows", m.Name, faults[i])
					}
				} else {
					agreed++
				}
			}
			if shown == 0 || agreed == 0 && m.Name == "fma64" {
				t.Errorf("%s: %d shown, %d not: nothing was tried", m.Name, shown, agreed)
			}
		}
	}
}

// Operations that keep half of the result show fewer faults.
func TestAViewHidesWhatIsNotKept(t *testing.T) {
	m, _ := Lookup("mad32")
	n := m.Build()
	ops := drawn(m, n, 256, 1)
	low := make([]uint8, 256)
	for i := range low {
		low[i] = 1
	}
	whole, half := NewGrader(n, n.Stuck()), NewGrader(n, n.Stuck())
	whole.Feed(ops, nil)
	half.Feed(ops, low)
	if w, h := whole.Left(), half.Left(); h < 4*w || h < len(n.Stuck())/5 {
		t.Errorf("of %d faults the whole result leaves %d, half of it %d", len(n.Stuck()), w, h)
	}
}

// A gate whose output cannot matter is found out by proof, not by trying.
func TestRedundantFaults(t *testing.T) {
	b := newBuilder("test", "")
	x, y := b.input("x", 1)[0], b.input("y", 1)[0]
	// x | (x & y): the AND can be stuck at 0 and nobody sees it.
	b.output("d", bus{b.or(x, b.and(x, y))})
	n := b.done()
	want := map[bool]int{}
	for _, f := range n.Stuck() {
		u := NewUnit(n)
		ops := []uint64{0, 0, 0, 1, 1, 0, 1, 1}
		right, broken := u.Compute(ops), u.ComputeWith(f, ops)
		same := true
		for i := range right {
			same = same && right[i] == broken[i]
		}
		if n.Redundant(f) && !same {
			t.Errorf("%v is called redundant, and shows", f)
		}
		want[n.Redundant(f)]++
	}
	if want[true] == 0 || want[false] == 0 {
		t.Errorf("redundant or not: %v", want)
	}
}
