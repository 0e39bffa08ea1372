// Package replay judges what a fleet's history keeps again, by another policy: which nodes it would have taken, and why.
//
// It is pure. History keeps faults and what was done about them, not readings that passed; Report.Blind says in words what
// therefore cannot be told.
package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// An Outcome is what a policy makes of a fault.
type Outcome string

const (
	Drained  Outcome = "drain"   // the node is taken, as far as the guard has room
	Observed Outcome = "observe" // it is found, and nothing is done
	NoFault  Outcome = "none"    // by this policy it is no fault
	Off      Outcome = "off"     // the check does not run
)

// A Case is one reason on one node.
type Case struct {
	Node   string        `json:"node"`
	Reason string        `json:"reason"` // as a case's cause: the check and its code
	First  time.Time     `json:"first"`
	Faults int           `json:"faults"`         // that history keeps
	Said   string        `json:"said"`           // what the first one said
	Hard   bool          `json:"hard"`           // the severest, by the new policy
	Action checks.Action `json:"action"`         // the severest, by the new policy
	Now    Outcome       `json:"now"`            // by the policy in force
	Would  Outcome       `json:"would"`          // by the new one
	AsThen bool          `json:"as_judged_then"` // the reading was not kept: thresholds did not count anew
}

// A Report is what history tells of a policy.
type Report struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Cases  []Case    `json:"cases"` // by node and reason
	Now    []string  `json:"now"`   // nodes taken by the policy in force
	Would  []string  `json:"would"` // nodes taken by the new one
	Hour   int       `json:"hour"`  // most nodes that the new one first takes within an hour
	Blind  []string  `json:"blind"` // what history cannot tell
	Faults int       `json:"faults"`
}

// An Input is what Run looks at.
type Input struct {
	Entries  []wire.HistoryEntry // oldest first
	From, To time.Time           // entries of other times are left out
	SKU      map[string]string   // product by node; a node that is missing has none known
	Now, New policy.Policy
}

// Run judges the faults in history by both policies.
func Run(in Input) Report {
	r := Report{From: in.From, To: in.To}
	now, would := newJudge(in.Now, in.SKU), newJudge(in.New, in.SKU)
	cases := map[string]*Case{}
	taken := map[string]time.Time{} // when the new policy first takes a node
	for _, e := range in.Entries {
		if e.At.Before(in.From) || e.At.After(in.To) {
			continue
		}
		for _, f := range faults(e) {
			r.Faults++
			reason := lifecycle.Cause(f)
			key := e.Node + "\x00" + reason
			c, ok := cases[key]
			if !ok {
				c = &Case{Node: e.Node, Reason: reason, First: e.At, Said: f.Reason, Now: Off, Would: Off}
				cases[key] = c
			}
			c.Faults++
			was, _, _ := now.judge(e.Node, f)
			is, again, whole := would.judge(e.Node, f)
			c.Now, c.Would = worse(c.Now, was), worse(c.Would, is)
			if again.Verdict == checks.Fail {
				c.Hard, c.Action = c.Hard || again.Hard, max(c.Action, again.Action)
			}
			c.AsThen = c.AsThen || !whole
			if _, had := taken[e.Node]; is == Drained && !had {
				taken[e.Node] = e.At
			}
		}
	}
	nodes := func(of func(*Case) Outcome) []string {
		var out []string
		for _, c := range cases {
			if of(c) == Drained {
				out = append(out, c.Node)
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	r.Now, r.Would = nodes(func(c *Case) Outcome { return c.Now }), nodes(func(c *Case) Outcome { return c.Would })
	for _, c := range cases {
		r.Cases = append(r.Cases, *c)
	}
	slices.SortFunc(r.Cases, func(a, b Case) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Reason, b.Reason)) })
	r.Hour = within(taken, time.Hour)
	r.Blind = blind(in, r)
	return r
}

// faults gives the faults that an entry tells of. A screen's are told by themselves before it ends.
func faults(e wire.HistoryEntry) []checks.Finding {
	if e.Node == "" || !strings.HasPrefix(e.Event, "hard_fault ") && !strings.HasPrefix(e.Event, "soft_fault ") {
		return nil
	}
	ev, err := lifecycle.ParseEvent(e.Event)
	if err != nil {
		return nil // of a later version: its form is not known here
	}
	switch ev := ev.(type) {
	case lifecycle.HardFault:
		return []checks.Finding{ev.Finding}
	case lifecycle.SoftFault:
		return []checks.Finding{ev.Finding}
	}
	return nil
}

// rank orders outcomes: of several faults with one reason the worst counts.
var rank = map[Outcome]int{Off: 0, NoFault: 1, Observed: 2, Drained: 3}

func worse(a, b Outcome) Outcome {
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// within gives the most nodes whose times lie within d of each other.
func within(times map[string]time.Time, d time.Duration) int {
	var ts []time.Time
	for _, t := range times {
		ts = append(ts, t)
	}
	slices.SortFunc(ts, time.Time.Compare)
	most, first := 0, 0
	for i := range ts {
		for ts[i].Sub(ts[first]) > d {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// A judge resolves one policy for nodes.
type judge struct {
	table *policy.Table
	sku   map[string]string
	made  map[policy.Match]policy.Policy
}

func newJudge(p policy.Policy, sku map[string]string) *judge {
	return &judge{table: policy.NewTable(p), sku: sku, made: map[policy.Match]policy.Policy{}}
}

func (j *judge) judge(node string, f checks.Finding) (Outcome, checks.Finding, bool) {
	m := j.table.Match(node, j.sku[node])
	p, ok := j.made[m]
	if !ok {
		p = j.table.Resolve(m)
		j.made[m] = p
	}
	mode := p.ModeOf(f.Check)
	if mode == policy.Off {
		return Off, f, true
	}
	again, whole := catalog.Rejudge(f, p)
	switch {
	case again.Verdict != checks.Fail:
		return NoFault, again, whole
	case mode == policy.Act:
		return Drained, again, whole
	}
	return Observed, again, whole
}
