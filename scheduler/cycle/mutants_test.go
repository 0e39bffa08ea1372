package cycle

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutants are wrong queues that somebody could write. tests is the package, beside this one, whose tests must notice.
var mutants = []struct{ name, tests, file, old, new string }{
	{"Before is turned round", "cycle", "queue/before.go", "func Before(a, b Key) bool { return compareKeys(a, b) < 0 }", "func Before(a, b Key) bool { return compareKeys(a, b) > 0 }"},
	{"rank is not asked in the order", "queue", "queue/before.go", "		cmp.Compare(b.Rank, a.Rank),\n", ""},
	{"borrowers go first", "queue", "queue/before.go", "first(b.Borrows, a.Borrows)", "first(a.Borrows, b.Borrows)"},
	{"the last to come goes first", "queue", "queue/before.go", "cmp.Compare(a.Submit, b.Submit)", "cmp.Compare(b.Submit, a.Submit)"},
	{"who borrows pushes others out", "cycle", "queue/contest.go", " && !c.budget.ledger.Borrows(c.p.assoc, c.p.Amounts())", ""},
	{"anybody after may be pushed out", "cycle", "queue/contest.go", "if !listed && (!k.Borrows || k.Rank > c.key.Rank) {", "if false && !listed {"},
	{"exempt time is ignored", "cycle", "queue/contest.go", "c.now-v.Start < its.ExemptTime {", "c.now-v.Start < 0*its.ExemptTime {"},
	{"a victim comes back at once", "cycle", "queue/eligible.go", "p != nil && p.State == Pending {", "p != nil && false {"},
	{"what is freed is not kept", "cycle", "cycle/push.go", "	c.kept[j.ID] = kept{d.Plan.Nodes, until}\n", ""},
	{"all who may go, go", "cycle", "preempt/decide.go", "	few = t.prune(few)\n", ""},
	{"preemption without a place", "cycle", "preempt/decide.go", "	return d, ok\n}\n\n// standing", "	return d, ok || len(d.Victims) > 0\n}\n\n// standing"},
	{"a limit is off by one", "queue", "queue/admit.go", "s.jobs+1 > l.GrpJobs", "s.jobs > l.GrpJobs"},
	{"a user's GPUs are not counted", "queue", "queue/admit.go", "n+a[r] > m {\n				return Reason{qosMax", "a[r] > m {\n				return Reason{qosMax"},
	{"usage does not fade", "quota", "quota/history.go", "		h.raw[i] *= f\n", "		h.raw[i] *= 1 + 0*f\n"},
	{"half-life by ln 2", "quota", "quota/history.go", "d = 1 - 0.693/halfLife", "d = math.Pow(0.5, 1/halfLife)"},
	{"ties have ranks of their own", "quota", "quota/fairtree.go", "		if !tied {\n", "		if true {\n"},
	{"accounts before users", "quota", "quota/fairtree.go", "btoi(t.entries[b].User), btoi(t.entries[a].User)", "btoi(t.entries[a].User), btoi(t.entries[b].User)"},
	{"guarantees are lent", "quota", "quota/ledger.go", "max(0, e.quota[i]-e.Lend[i])", "max(0, 0*e.quota[i])"},
	{"rounded for the job", "timemap", "timemap/grid.go", "return min(int32(sort.Search(len(g.at), func(i int) bool { return g.at[i] >= t })), g.Slots())", "return max(0, g.Down(t))"},
	{"gaps a slot too long", "timemap", "timemap/sweep.go", "m.note(node, at, min(last[c.From], until))", "m.note(node, at, min(last[min(c.From+1, m.grid.Slots())], until))"},
	{"planned starts are not kept free", "backfill", "backfill/pass.go", "		p.times().claim(t, p.times().grid.Down(next.Start), p.times().end(next.End), p.times().job(i))\n", "		_ = t\n"},
	{"a shape that fails now stops all", "backfill", "backfill/pass.go", "if !shared || !p.failed[s] {", "if len(p.failed) == 0 {"},
}

// TestMutants runs the tests of one package against each mutant, by an overlay of one file.
func TestMutants(t *testing.T) {
	if testing.Short() || os.Getenv("ASSAY_MUTANT") != "" {
		t.Skip("long, and never within itself")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			file := filepath.Join(root, m.file)
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(src), m.old); n != 1 {
				t.Fatalf("%s has %q %d times, want once: say the mutant anew", m.file, m.old, n)
			}
			dir := t.TempDir()
			wrong := filepath.Join(dir, "wrong.go")
			if err := os.WriteFile(wrong, []byte(strings.Replace(string(src), m.old, m.new, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			overlay := filepath.Join(dir, "overlay.json")
			text, err := json.Marshal(map[string]any{"Replace": map[string]string{file: wrong}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(overlay, text, 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-failfast", "-timeout=2m", "-overlay", overlay, "./"+m.tests)
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "ASSAY_MUTANT=1", "RAPID_NOFAILFILE=true", "RAPID_SHRINKTIME=0s")
			out, err := cmd.CombinedOutput()
			switch {
			case strings.Contains(string(out), "build failed"):
				t.Fatalf("does not compile:\n%s", out)
			case err == nil:
				t.Errorf("the tests of %s pass", m.tests)
			}
		})
	}
}
