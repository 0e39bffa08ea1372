package slurm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// maxBatch bounds the nodes of one scontrol call: the update holds slurmctld's node lock throughout.
const maxBatch = 1000

// Expect is what a node's drain must still be for a change to go on.
type Expect struct {
	Reason string    // as we wrote it; what Slurm appends during a reboot is looked through
	User   string    // empty: any
	Time   time.Time // of the reason, to the second; zero: any
	// When Slurm appended to the reason it also took over user and time; the text alone counts then.
}

// differs says in words how n's drain is not what was expected, or nothing.
func (e Expect) differs(n Node) string {
	switch {
	case !SameReason(n.Reason, e.Reason):
		return fmt.Sprintf("reason is %q by %s, not %q", n.Reason, n.ReasonUser, CleanReason(e.Reason))
	case BareReason(n.Reason) != n.Reason:
		return ""
	case e.User != "" && n.ReasonUser != e.User:
		return fmt.Sprintf("reason is %s's, not %s's", n.ReasonUser, e.User)
	case !e.Time.IsZero() && !n.ReasonTime.Equal(e.Time.Truncate(time.Second)):
		return fmt.Sprintf("reason is of %s, not of %s", stamp(n.ReasonTime), stamp(e.Time))
	}
	return ""
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return t.UTC().Format(time.RFC3339)
}

// A DrainOrder asks for one node's drain with our reason.
type DrainOrder struct {
	Node   string
	Reason string
	// Expect, if not nil, is our earlier reason that this one may replace.
	Expect *Expect
}

// A Result is how one order went.
type Result struct {
	Node   string
	Wrote  bool // false without an error: it stood already
	Reason string
	Err    error
}

// Drain drains nodes, each with its reason; those with equal reasons go in one call. Results are in the order of orders.
//
// A node already drained with exactly that reason is left alone. A drain by Slurm itself, or the earlier one in Expect, is
// taken over; anybody else's is left as it is and reported as *ChangedError.
func (c *Client) Drain(ctx context.Context, orders []DrainOrder) []Result {
	results := make([]Result, len(orders))
	names := make([]string, len(orders))
	for i, o := range orders {
		names[i] = o.Node
		results[i] = Result{Node: o.Node, Reason: CleanReason(o.Reason)}
	}
	found, err := c.some(ctx, names)
	if err != nil {
		for i := range results {
			results[i].Err = err
		}
		return results
	}

	var reasons []string // in order of first use
	groups := map[string][]int{}
	for i, o := range orders {
		r := &results[i]
		write, err := drainable(o, r.Reason, found)
		if r.Err = err; err != nil || !write {
			continue
		}
		if groups[r.Reason] == nil {
			reasons = append(reasons, r.Reason)
		}
		groups[r.Reason] = append(groups[r.Reason], i)
	}
	for _, reason := range reasons {
		for batch := range slices.Chunk(groups[reason], maxBatch) {
			c.drainBatch(ctx, results, batch, reason)
		}
	}
	return results
}

// drainable decides whether an order has anything to write, and may.
func drainable(o DrainOrder, reason string, found map[string]Node) (bool, error) {
	n, ok := found[o.Node]
	switch {
	case reason == "":
		return false, &RefusedError{Verb: "drain", Target: o.Node, Msg: "no reason given", Advice: "say why"}
	case !ok:
		return false, &RefusedError{Verb: "drain", Target: o.Node, Msg: "Slurm knows no such node", Advice: "compare with `sinfo -N`"}
	case !n.Drained():
		return true, nil // a reason that still stands on an undrained node is stale
	case SameReason(n.Reason, reason):
		return false, nil
	case n.Reason == "" || IsSlurmReason(n.Reason):
		return true, nil
	case o.Expect == nil:
		return false, &ChangedError{Verb: "drain", Target: o.Node, What: fmt.Sprintf("already drained by %s: %q", n.ReasonUser, n.Reason)}
	}
	if why := o.Expect.differs(n); why != "" {
		return false, &ChangedError{Verb: "drain", Target: o.Node, What: why}
	}
	return true, nil
}

// drainBatch writes one reason to several nodes. slurmctld stops at the first node it does not take, so after a refusal
// each is tried by itself.
func (c *Client) drainBatch(ctx context.Context, results []Result, batch []int, reason string) {
	names := make([]string, len(batch))
	for i, at := range batch {
		names[i] = results[at].Node
	}
	err := c.change(ctx, "drain", c.cfg.Scontrol, "update", "nodename="+hostlist.Compress(names), "state=drain", "reason="+reason)
	if isRefused(err) && len(batch) > 1 {
		for _, at := range batch {
			c.drainBatch(ctx, results, []int{at}, reason)
		}
		return
	}
	for _, at := range batch {
		results[at].Wrote, results[at].Err = err == nil, err
	}
}

// SetReason puts our reason back on a node that is drained by us and whose reason Slurm replaced, as it does when a node
// registers with fewer GPUs than configured. Expect, if not nil, is a reason that may be replaced besides Slurm's own.
func (c *Client) SetReason(ctx context.Context, node, reason string, expect *Expect) error {
	n, err := c.one(ctx, "reason", node)
	if err != nil {
		return err
	}
	reason = CleanReason(reason)
	if !n.Drained() {
		return &ChangedError{Verb: "reason", Target: node, What: "it is not drained any more"}
	}
	write, err := drainable(DrainOrder{Node: node, Reason: reason, Expect: expect}, reason, map[string]Node{node: n})
	if err != nil || !write {
		return err
	}
	return c.change(ctx, "reason", c.cfg.Scontrol, "update", "nodename="+node, "reason="+reason)
}
