package cycle

import (
	"testing"

	"github.com/assay-gpu/assay/checks/mutants/byhand"
)

// mutants are wrong queues that somebody could write.
var mutants = []byhand.Mutant{
	{Name: "Before is turned round", Package: "cycle", File: "queue/before.go", Old: "func Before(a, b Key) bool { return compareKeys(a, b) < 0 }", New: "func Before(a, b Key) bool { return compareKeys(a, b) > 0 }"},
	{Name: "rank is not asked in the order", Package: "queue", File: "queue/before.go", Old: "		cmp.Compare(b.Rank, a.Rank),\n", New: ""},
	{Name: "borrowers go first", Package: "queue", File: "queue/before.go", Old: "first(b.Borrows, a.Borrows)", New: "first(a.Borrows, b.Borrows)"},
	{Name: "the last to come goes first", Package: "queue", File: "queue/before.go", Old: "cmp.Compare(a.Submit, b.Submit)", New: "cmp.Compare(b.Submit, a.Submit)"},
	{Name: "who borrows pushes others out", Package: "cycle", File: "queue/contest.go", Old: " && !c.budget.ledger.Borrows(c.p.assoc, c.p.Amounts())", New: ""},
	{Name: "anybody after may be pushed out", Package: "cycle", File: "queue/contest.go", Old: "if !listed && (!k.Borrows || k.Rank > c.key.Rank) {", New: "if false && !listed {"},
	{Name: "exempt time is ignored", Package: "cycle", File: "queue/contest.go", Old: "c.now-v.Start < its.ExemptTime {", New: "c.now-v.Start < 0*its.ExemptTime {"},
	{Name: "a victim comes back at once", Package: "cycle", File: "queue/eligible.go", Old: "p != nil && p.State == Pending {", New: "p != nil && false {"},
	{Name: "what is freed is not kept", Package: "cycle", File: "cycle/push.go", Old: "	c.kept[j.ID] = kept{d.Plan.Nodes, until}\n", New: ""},
	{Name: "all who may go, go", Package: "cycle", File: "preempt/decide.go", Old: "	few = t.prune(few)\n", New: ""},
	{Name: "preemption without a place", Package: "cycle", File: "preempt/decide.go", Old: "	return d, ok\n}\n\n// standing", New: "	return d, ok || len(d.Victims) > 0\n}\n\n// standing"},
	{Name: "a limit is off by one", Package: "queue", File: "queue/admit.go", Old: "s.jobs+1 > l.GrpJobs", New: "s.jobs > l.GrpJobs"},
	{Name: "a user's GPUs are not counted", Package: "queue", File: "queue/admit.go", Old: "n+a[r] > m {\n				return Reason{qosMax", New: "a[r] > m {\n				return Reason{qosMax"},
	{Name: "usage does not fade", Package: "quota", File: "quota/history.go", Old: "		h.raw[i] *= f\n", New: "		h.raw[i] *= 1 + 0*f\n"},
	{Name: "half-life by ln 2", Package: "quota", File: "quota/history.go", Old: "d = 1 - 0.693/halfLife", New: "d = math.Pow(0.5, 1/halfLife)"},
	{Name: "ties have ranks of their own", Package: "quota", File: "quota/fairtree.go", Old: "		if !tied {\n", New: "		if true {\n"},
	{Name: "accounts before users", Package: "quota", File: "quota/fairtree.go", Old: "btoi(t.entries[b].User), btoi(t.entries[a].User)", New: "btoi(t.entries[a].User), btoi(t.entries[b].User)"},
	{Name: "guarantees are lent", Package: "quota", File: "quota/ledger.go", Old: "max(0, e.quota[i]-e.Lend[i])", New: "max(0, 0*e.quota[i])"},
	{Name: "rounded for the job", Package: "timemap", File: "timemap/grid.go", Old: "return min(int32(sort.Search(len(g.at), func(i int) bool { return g.at[i] >= t })), g.Slots())", New: "return max(0, g.Down(t))"},
	{Name: "gaps a slot too long", Package: "timemap", File: "timemap/sweep.go", Old: "m.note(node, at, min(last[c.From], until))", New: "m.note(node, at, min(last[min(c.From+1, m.grid.Slots())], until))"},
	{Name: "planned starts are not kept free", Package: "backfill", File: "backfill/pass.go", Old: "		p.times().claim(t, p.times().grid.Down(next.Start), p.times().end(next.End), p.times().job(i))\n", New: "		_ = t\n"},
	{Name: "a shape that fails now stops all", Package: "backfill", File: "backfill/pass.go", Old: "!shared || !p.failed[s] {", New: "len(p.failed) == 0 && (shared || !shared) {"},
}

// Each mutant changes one place of the source as it is.
func TestMutantsAreSaid(t *testing.T) { byhand.Said(t, "..", mutants) }

// TestMutants runs the tests of one package against each mutant.
func TestMutants(t *testing.T) { byhand.Run(t, "..", mutants, "-short") }
