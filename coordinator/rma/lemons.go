package rma

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
)

// Window is how far back lemons are looked for: Meta's 28 days (arXiv 2410.21680).
const Window = 28 * 24 * time.Hour

// Attribution: a job's failure is put down to a check that fired on its node from ten minutes before it to five after
// (arXiv 2410.21680).
const (
	FiredBefore = 10 * time.Minute
	FiredAfter  = 5 * time.Minute
)

// Signals are what one node showed within the window. Their names are those of the paper.
type Signals struct {
	Node     string  `json:"node"`
	XIDs     int     `json:"xid_cnt"`
	Tickets  int     `json:"tickets"`
	Outs     int     `json:"out_count"` // times taken out of service
	Multi    int     `json:"multi_node_node_fails"`
	Single   int     `json:"single_node_node_fails"`
	Jobs     int     `json:"single_node_jobs"` // that ended on it
	FailRate float64 `json:"single_node_node_failure_rate"`
}

// A Lemon is a node that stands out, and by what.
type Lemon struct {
	Signals
	Score   int      `json:"score"`   // signals above the fleet's bound
	Reasons []string `json:"reasons"` // one for each, with the bound
}

var signals = []struct {
	name  string
	floor func(policy.Lemons) float64
	of    func(Signals) float64
	words string
}{
	{"xid_cnt", func(p policy.Lemons) float64 { return p.XIDs }, func(s Signals) float64 { return float64(s.XIDs) }, "XIDs"},
	{"tickets", func(p policy.Lemons) float64 { return p.Tickets }, func(s Signals) float64 { return float64(s.Tickets) }, "RMA tickets"},
	{"out_count", func(p policy.Lemons) float64 { return p.Outs }, func(s Signals) float64 { return float64(s.Outs) }, "times out of service"},
	{"multi_node_node_fails", func(p policy.Lemons) float64 { return p.MultiFails }, func(s Signals) float64 { return float64(s.Multi) }, "failures of jobs of several nodes"},
	{"single_node_node_fails", func(p policy.Lemons) float64 { return p.SingleFails }, func(s Signals) float64 { return float64(s.Single) }, "failures of jobs of its own"},
	{"single_node_node_failure_rate", func(p policy.Lemons) float64 { return p.FailRate }, func(s Signals) float64 { return s.FailRate }, "of its own jobs failed"},
}

// Lemons lists the nodes with at least one signal above its bound, worst first. Every node of the fleet must be in all, those
// that showed nothing too: they are what others are compared with.
func Lemons(all []Signals, p policy.Lemons) []Lemon {
	found := map[string]*Lemon{}
	for _, sig := range signals {
		values := make([]float64, len(all))
		for i, s := range all {
			values[i] = sig.of(s)
		}
		slices.Sort(values)
		if len(values) == 0 {
			continue
		}
		bound := sig.floor(p)
		if len(values) >= p.SmallFleet {
			bound = max(bound, values[int(p.Percentile*float64(len(values)-1))])
		}
		for _, s := range all {
			v := sig.of(s)
			if v <= bound {
				continue
			}
			l := found[s.Node]
			if l == nil {
				l = &Lemon{Signals: s}
				found[s.Node] = l
			}
			l.Score++
			l.Reasons = append(l.Reasons, reason(sig.name, sig.words, v, bound))
		}
	}
	out := make([]Lemon, 0, len(found))
	for _, l := range found {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b Lemon) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Outs, a.Outs), cmp.Compare(b.XIDs, a.XIDs), strings.Compare(a.Node, b.Node))
	})
	return out
}

func reason(name, words string, v, bound float64) string {
	if name == "single_node_node_failure_rate" {
		return fmt.Sprintf("%.0f %% %s (bound %.0f %%)", 100*v, words, 100*bound)
	}
	return fmt.Sprintf("%.0f %s (bound %.0f)", v, words, bound)
}

// Attributed reports whether a job's failure at end is put down to a check that fired at fired.
func Attributed(end, fired time.Time) bool {
	return !fired.Before(end.Add(-FiredBefore)) && !fired.After(end.Add(FiredAfter))
}
