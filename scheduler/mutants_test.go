package scheduler

import (
	"testing"

	"github.com/assay-gpu/assay/checks/mutants/byhand"
)

// mutants are wrong schedulers that somebody could write. The stories, the walk and the brute force must tell each from
// the right one.
var mutants = []byhand.Mutant{
	{Name: "topology is ignored", File: "search.go", Old: "if p, ok := a.oneBin(); ok {", New: "if p, ok := a.anywhere(); ok {"},
	{Name: "expiry is ignored", File: "ask.go", Old: "b.first[k] < a.until {", New: "false {"},
	{Name: "a certificate that lapses a second too soon", File: "block.go", Old: "if b.first[k] >= t {", New: "if b.first[k] >= t-1 {"},
	{Name: "one that holds to the second is refused", File: "block.go", Old: "if c.until >= t {", New: "if c.until > t {"},
	{Name: "any level will do", File: "ask.go", Old: "w &= b.level[a.level][k];", New: "w &= b.level[1][k];"},
	{Name: "age is ignored", File: "ask.go", Old: "a.since != 0 && n.issued < a.since ||", New: ""},
	{Name: "a minimum of an hour whatever the limit", File: "gang.go", Old: "return min(g.Limit, hour)", New: "return hour"},
	{Name: "through asks no more than others", File: "gang.go", Old: "case g.Through && g.Limit > 0:", New: "case false:"},
	{Name: "GPUs without a certificate are used", File: "cell.go", Old: "return n.free & n.covered &^ n.shape.MIG", New: "return n.free &^ n.shape.MIG"},
	{Name: "nodes that are out take work", File: "block.go", Old: "set(&b.open[k], n.shape != nil && n.bar == nil)", New: "set(&b.open[k], n.shape != nil)"},
	{Name: "reservations keep nobody off", File: "ask.go", Old: "		w &^= set.words[ci]\n", New: "		_ = set\n"},
	{Name: "a reservation is its holder's from the start of time", File: "ask.go", Old: "if floor(r.Start) > a.s.now || last < end {", New: "if last < end {"},
	{Name: "segments are ignored", File: "ask.go", Old: "a.lump = max(g.Segment, a.unit)", New: "a.lump = a.unit"},
	{Name: "an NVLink group reaches over domains", File: "count.go", Old: "			b.cap += n / a.unit\n", New: "			b.cap += n / a.unit\n			_ = p\n			b.cap = b.nodes / a.unit\n"},
	{Name: "--switches is ignored", File: "search.go", Old: "return !a.g.insists() || c.n <= a.g.Switches", New: "return true"},
	{Name: "--switches never gives in", File: "gang.go", Old: "(g.SwitchWait <= 0 || g.Waited < g.SwitchWait)", New: "true"},
	{Name: "more under a leaf than allowed", File: "count.go", Old: "b.cap = min(b.cap, a.g.PerLeaf/a.unit)", New: "_ = 0"},
	{Name: "the last leaf by greed", File: "leaves.go", Old: "if best := k.tightest(need, n, room); best != nil {", New: "if best := k.tightest(need, n, room); best != nil && false {"},
	{Name: "wholly free leaves are broken", File: "count.go", Old: "b.broken = s.idle[l] == s.full[l]", New: "b.broken = false"},
	{Name: "the emptiest leaf", File: "search.go", Old: "if !found || a.better(p.cost, best.cost) {", New: "if !found || a.better(best.cost, p.cost) {"},
	{Name: "counts are kept at the leaf alone", File: "fleet.go", Old: "sw = f.live.lay.tree.Switches[sw].Parent {", New: "sw = topo.None {"},
	{Name: "a snapshot that was handed out changes", File: "fleet.go", Old: "	if own.cells&(1<<k) == 0 {", New: "	if false {"},
	{Name: "a shared GPU is free as a whole", File: "work.go", Old: "		n.free &^= 1 << t.Part.GPU\n", New: ""},
	{Name: "two kinds on one GPU", File: "part.go", Old: "		if p.Kind != s.Kind {\n", New: "		if false {\n"},
	{Name: "the memory of a part is not asked", File: "part.go", Old: "memory+gib > shape.Memory", New: "false"},
	{Name: "a MIG instance wherever it fits", File: "part.go", Old: "p.starts&(1<<at) == 0 || taken", New: "taken"},
	{Name: "a part breaks a whole GPU first", File: "place.go", Old: "a.shared = g.Share.Kind != NoShare", New: "a.shared = false && g.Share.Kind != NoShare"},
	{Name: "grades are mixed", File: "place.go", Old: "g.Within = append(within, set)", New: "_, _ = within, set"},
	{Name: "a swap breaks a promise", File: "swap.go", Old: "if whole.shape(nodes, silent) == nil {", New: "if whole.shape(nodes, silent) == nil || true {"},
	{Name: "a swap to the nearest leaf in the file", File: "swap.go", Old: "sw := t.Leaf[old.Node]; sw", New: "sw := t.Roots()[0]; sw"},
}

// Each mutant changes one place of the source as it is.
func TestMutantsAreSaid(t *testing.T) { byhand.Said(t, ".", mutants) }

// TestMutants runs this package's tests against each mutant. It takes a few minutes.
func TestMutants(t *testing.T) {
	byhand.Run(t, ".", mutants, "-short", "-run", "TestStories|TestWalk|TestOptimum", "-rapid.checks=300")
}
