package scheduler

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutants are wrong schedulers that somebody could write. The stories, the walk and the brute force must tell each from
// the right one.
var mutants = []struct{ name, file, old, new string }{
	{"topology is ignored", "search.go", "if p, ok := a.oneBin(); ok {", "if p, ok := a.anywhere(); ok {"},
	{"expiry is ignored", "ask.go", "c.first < a.until {", "false {"},
	{"a certificate that lapses a second too soon", "cell.go", "if c.first >= t {", "if c.first >= t-1 {"},
	{"one that holds to the second is refused", "cell.go", "c.holds[i].until >= t {", "c.holds[i].until > t {"},
	{"any level will do", "ask.go", "w &= c.level[a.level];", "w &= c.level[1];"},
	{"age is ignored", "ask.go", "a.since != 0 && n.issued < a.since ||", ""},
	{"a minimum of an hour whatever the limit", "gang.go", "return min(g.Limit, hour)", "return hour"},
	{"through asks no more than others", "gang.go", "case g.Through && g.Limit > 0:", "case false:"},
	{"GPUs without a certificate are used", "cell.go", "return n.free & n.covered &^ n.shape.MIG", "return n.free &^ n.shape.MIG"},
	{"nodes that are out take work", "cell.go", "set(&c.open, n.shape != nil && n.bar == nil)", "set(&c.open, n.shape != nil)"},
	{"reservations keep nobody off", "ask.go", "		w &^= set.words[ci]\n", "		_ = set\n"},
	{"a reservation is its holder's from the start of time", "ask.go", "if floor(r.Start) > a.s.now || last < end {", "if last < end {"},
	{"segments are ignored", "ask.go", "a.lump = max(g.Segment, a.unit)", "a.lump = a.unit"},
	{"an NVLink group reaches over domains", "count.go", "			b.cap += n / a.unit\n", "			b.cap += n / a.unit\n			_ = p\n			b.cap = b.nodes / a.unit\n"},
	{"--switches is ignored", "search.go", "return !a.g.insists() || c.n <= a.g.Switches", "return true"},
	{"--switches never gives in", "gang.go", "(g.SwitchWait <= 0 || g.Waited < g.SwitchWait)", "true"},
	{"more under a leaf than allowed", "count.go", "b.cap = min(b.cap, a.g.PerLeaf/a.unit)", "_ = 0"},
	{"the last leaf by greed", "leaves.go", "if best := k.tightest(need, n); best != nil {", "if best := k.tightest(need, n); best != nil && false {"},
	{"wholly free leaves are broken", "count.go", "b.broken = s.idle[l] == s.full[l]", "b.broken = false"},
	{"the emptiest leaf", "search.go", "if !found || a.better(p.cost, best.cost) {", "if !found || a.better(best.cost, p.cost) {"},
	{"counts are kept at the leaf alone", "fleet.go", "sw = f.live.lay.tree.Switches[sw].Parent {", "sw = topo.None {"},
	{"a snapshot that was handed out changes", "fleet.go", "	if !f.own[ci] {", "	if false {"},
	{"a shared GPU is free as a whole", "work.go", "		n.free &^= 1 << t.Part.GPU\n", ""},
	{"two kinds on one GPU", "part.go", "		if p.Kind != s.Kind {\n", "		if false {\n"},
	{"the memory of a part is not asked", "part.go", "memory+gib > shape.Memory", "false"},
	{"a MIG instance wherever it fits", "part.go", "p.starts&(1<<at) == 0 || taken", "taken"},
	{"a part breaks a whole GPU first", "place.go", "a.shared = g.Share.Kind != NoShare", "a.shared = false && g.Share.Kind != NoShare"},
	{"grades are mixed", "place.go", "g.Within = append(within, set)", "_, _ = within, set"},
	{"a swap breaks a promise", "swap.go", "if whole.shape(nodes, silent) == nil {", "if whole.shape(nodes, silent) == nil || true {"},
	{"a swap to the nearest leaf in the file", "swap.go", "sw := t.Leaf[old.Node]; sw", "sw := t.Roots()[0]; sw"},
}

// Each mutant changes one place of the source as it is.
func TestMutantsAreSaid(t *testing.T) {
	for _, m := range mutants {
		src, err := os.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), m.old); n != 1 {
			t.Errorf("%s: %s has %q %d times, want once: say the mutant anew", m.name, m.file, m.old, n)
		}
	}
}

// TestMutants runs this package's tests against each mutant, by an overlay of one file. It takes a few minutes.
func TestMutants(t *testing.T) {
	if testing.Short() || os.Getenv("ASSAY_MUTANT") != "" {
		t.Skip("long, and never within itself")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			src, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			mutant := filepath.Join(dir, m.file)
			if err := os.WriteFile(mutant, []byte(strings.Replace(string(src), m.old, m.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			at, err := filepath.Abs(m.file)
			if err != nil {
				t.Fatal(err)
			}
			overlay, err := json.Marshal(map[string]map[string]string{"Replace": {at: mutant}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("go", "test", "-overlay", filepath.Join(dir, "overlay.json"), "-vet=off", "-short", "-failfast", "-run", "TestStories|TestWalk|TestOptimum", "-rapid.nofailfile", "-rapid.checks=300", "-rapid.shrinktime=0", ".")
			cmd.Env = append(os.Environ(), "ASSAY_MUTANT=1")
			out, err := cmd.CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("nothing tells it from the right scheduler: %q in place of %q", m.new, m.old)
			case strings.Contains(string(out), "[build failed]"), strings.Contains(string(out), "setup failed"):
				t.Errorf("does not build:\n%s", out)
			}
		})
	}
}
