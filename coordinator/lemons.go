package coordinator

import (
	"context"
	"time"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Lemons implements api.Repairs: the nodes that stand out by what they showed within the window, worst first.
func (c *Coordinator) Lemons(_ context.Context) (out []rma.Lemon, err error) {
	err = c.read(func(_ *lead, s *state, now time.Time) error {
		out = rma.Lemons(s.signals(now), s.policy.Lemons)
		return nil
	})
	return out, err
}

// signals sums up what every node showed within the window.
func (s *state) signals(now time.Time) []rma.Signals {
	since := now.Add(-rma.Window)
	by := map[string]*rma.Signals{}
	for name, n := range s.nodes {
		if n.State != lifecycle.Retired {
			by[name] = &rma.Signals{Node: name}
		}
	}
	fired := map[string][]time.Time{} // by node: when checks fired that took it out or might have
	for _, k := range s.cases {
		x := by[k.Node]
		if x == nil || k.Opened.Before(since) {
			continue
		}
		if k.Gathered != "" && k.Cause != lifecycle.CauseOrder {
			x.Outs++
		}
		for _, f := range k.Findings {
			if f.Check == "xid" {
				x.XIDs += max(f.Count, 1)
			}
			if !f.At.IsZero() {
				fired[k.Node] = append(fired[k.Node], f.At)
			}
		}
		fired[k.Node] = append(fired[k.Node], k.Opened)
	}
	for _, k := range s.tickets {
		if x := by[k.Node]; x != nil && !k.Opened.Before(since) {
			x.Tickets++
		}
	}
	for _, j := range s.jobs {
		s.attribute(j.Job, since, by, fired)
	}
	out := make([]rma.Signals, 0, len(by))
	for _, name := range sortedKeys(by) {
		x := *by[name]
		if x.Jobs > 0 {
			x.FailRate = float64(x.Single) / float64(x.Jobs)
		}
		out = append(out, x)
	}
	return out
}

// attribute puts a job's failure down to those of its nodes on which a check fired about then.
func (s *state) attribute(j wire.Job, since time.Time, by map[string]*rma.Signals, fired map[string][]time.Time) {
	if j.Ended.IsZero() || j.Ended.Before(since) {
		return
	}
	nodes, err := hostlist.Expand(j.Nodes)
	if err != nil {
		return // it never had nodes
	}
	failed := j.State == "FAILED" || j.State == "NODE_FAIL"
	for _, name := range nodes {
		x := by[name]
		if x == nil {
			continue
		}
		if len(nodes) == 1 {
			x.Jobs++
		}
		if !failed {
			continue
		}
		for _, at := range fired[name] {
			if !rma.Attributed(j.Ended, at) {
				continue
			}
			if len(nodes) == 1 {
				x.Single++
			} else {
				x.Multi++
			}
			break
		}
	}
}
