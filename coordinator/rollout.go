package coordinator

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/policy/policyfile"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A rollout is a policy that holds on a share of the nodes, beside the one in force.
type rollout struct {
	Policy  policy.Policy `json:"policy"`
	Share   policy.Share  `json:"share"` // as asked for
	Below   float64       `json:"below"` // nodes that draw a lower lot hold it: see draw
	By      string        `json:"by"`
	Reason  string        `json:"reason,omitempty"`
	Since   time.Time     `json:"since"`
	Promote time.Time     `json:"promote,omitzero"` // zero: when somebody says so
}

// holds reports whether the rollout's policy is the one of a node.
func (r *rollout) holds(node string) bool { return r != nil && r.lot(node) < r.Below }

// lot is what a node draws. Each rollout is tried on other nodes.
func (r *rollout) lot(node string) float64 {
	return policy.Lot(fmt.Sprintf("policy %d", r.Policy.Version), node)
}

// draw settles on which of the nodes that are enrolled now the policy holds: on the share that was asked for, rounded up, so
// on one at least. Of a few nodes a share drawn by each node's lot alone can be none, and a rollout to no node proves nothing.
// Nodes that are enrolled later go by their lot.
func (r *rollout) draw(nodes []string) {
	if len(nodes) == 0 {
		r.Below = float64(r.Share)
		return
	}
	lots := make([]float64, 0, len(nodes)+1)
	for _, n := range nodes {
		lots = append(lots, r.lot(n))
	}
	lots = append(lots, 1)
	slices.Sort(lots)
	r.Below = lots[max(1, int(math.Ceil(float64(r.Share)*float64(len(nodes))-1e-9)))] // 7 % of 100 are 7, in floating point too
}

// policyIn is the policy of a node, not yet resolved for it: the one in force, or the one that is rolled out to it. What
// is the fleet's (guard, lifecycle, certificates, baseline) stays the one in force's until it is promoted.
func policyIn(inForce policy.Policy, r *rollout, node string) policy.Policy {
	if !r.holds(node) {
		return inForce
	}
	p := r.Policy
	p.Guard, p.Lifecycle, p.Certificate, p.Baseline = inForce.Guard, inForce.Lifecycle, inForce.Certificate, inForce.Baseline
	return p
}

// Rollout implements api.Policies.
func (c *Coordinator) Rollout(_ context.Context) (out wire.Rollout, err error) {
	err = c.read(func(l *lead, s *state, _ time.Time) error {
		r := s.rollout
		if r == nil {
			return nil
		}
		p := r.Policy
		out = wire.Rollout{Policy: &p, Share: r.Share, By: r.By, Reason: r.Reason, Since: r.Since, Promote: r.Promote}
		out.Nodes, out.Taken = l.canaries(r)
		return nil
	})
	return out, err
}

// canaries are the nodes on which a rollout's policy holds, and those of them whose agent has said that it has it.
func (l *lead) canaries(r *rollout) (nodes, taken []string) {
	for _, name := range l.st.managed() {
		if !r.holds(name) {
			continue
		}
		nodes = append(nodes, name)
		if b, ok := l.beats.of(name); ok && b.policy == r.Policy.Version {
			taken = append(taken, name)
		}
	}
	return nodes, taken
}

// managed are the nodes that are not retired, in order of their names.
func (s *state) managed() []string {
	return slices.DeleteFunc(sortedKeys(s.nodes), func(name string) bool { return s.nodes[name].State == lifecycle.Retired })
}

// refuse gives every fault of a policy in one error; nil when it has none.
func refuse(p policy.Policy) error {
	var lines []string
	for _, f := range policyfile.Validate(p) {
		lines = append(lines, f.Path+": "+f.Message)
	}
	if len(lines) == 0 {
		return nil
	}
	return &invalidError{"policy refused: " + strings.Join(lines, "; "), "the policy in force is unchanged"}
}

// together refuses a policy whose overrides, each sound, make no sense together on some node that is enrolled.
func (t *tx) together(p policy.Policy) error {
	if len(p.Overrides) < 2 {
		return nil
	}
	table, seen := policy.NewTable(p), map[policy.Match]bool{}
	var lines []string
	for _, name := range sortedKeys(t.base.nodes) {
		m := table.Match(name, skuOf(t.base.nodes[name]))
		if seen[m] {
			continue
		}
		seen[m] = true
		for _, f := range policy.Validate(table.Resolve(m)) {
			lines = append(lines, fmt.Sprintf("overrides together on %s: %s: %s", name, f.Path, f.Message))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return &invalidError{"policy refused: " + strings.Join(lines, "; "), "the policy in force is unchanged"}
}

// RollOut implements api.Policies: the policy holds on a share of the nodes. A rollout that is on is replaced.
func (c *Coordinator) RollOut(ctx context.Context, by string, ask wire.RolloutAsk) (wire.Rollout, error) {
	if err := refuse(ask.Policy); err != nil {
		return wire.Rollout{}, err
	}
	if !(ask.Share > 0 && ask.Share < 1) {
		return wire.Rollout{}, &invalidError{fmt.Sprintf("rollout to a share of %v of the nodes: want more than 0 and less than 1", float64(ask.Share)), "for all nodes apply the policy without a share"}
	}
	if ask.After < 0 {
		return wire.Rollout{}, &invalidError{fmt.Sprintf("promotion after %s: want a time to come", ask.After), "leave it out to promote by hand"}
	}
	l, err := c.leading()
	if err != nil {
		return wire.Rollout{}, err
	}
	err = l.do(ctx, func(t *tx) error {
		if err := t.together(ask.Policy); err != nil {
			return err
		}
		ask.Policy.Version = t.nextPolicy()
		r := &rollout{Policy: ask.Policy, Share: ask.Share, By: by, Reason: ask.Reason, Since: t.now}
		r.draw(t.base.managed())
		if ask.After > 0 {
			r.Promote = t.now.Add(ask.After.D())
		}
		t.rollout, t.governed = r, true
		t.record(wire.HistoryEntry{Event: fmt.Sprintf("policy_rollout version=%d mode=%s share=%v%s", r.Policy.Version, r.Policy.Mode, float64(r.Share), because(ask.Reason)), By: by})
		return nil
	})
	if err != nil {
		return wire.Rollout{}, err
	}
	return c.Rollout(ctx)
}

// nextPolicy is a version that no policy has had, withdrawn ones included.
func (t *tx) nextPolicy() int {
	t.counters.Policy = max(t.counters.Policy, t.policy.Version) + 1
	return t.counters.Policy
}

// because is a reason as history writes it.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " reason=" + quote(reason)
}

// Promote implements api.Policies: what was rolled out holds everywhere.
func (c *Coordinator) Promote(ctx context.Context, by string, v wire.RolloutVerb) (policy.Policy, error) {
	return c.endRollout(ctx, v, func(t *tx) {
		t.promote(by, v.Reason)
	})
}

// promote puts the rollout's policy in force.
func (t *tx) promote(by, reason string) {
	t.policy, t.rollout, t.governed = t.rollout.Policy, nil, true
	t.record(wire.HistoryEntry{Event: fmt.Sprintf("policy version=%d mode=%s%s", t.policy.Version, t.policy.Mode, because(reason)), By: by})
}

// Withdraw implements api.Policies: the policy in force holds everywhere again.
func (c *Coordinator) Withdraw(ctx context.Context, by string, v wire.RolloutVerb) (policy.Policy, error) {
	return c.endRollout(ctx, v, func(t *tx) {
		t.record(wire.HistoryEntry{Event: fmt.Sprintf("policy_withdrawn version=%d%s", t.rollout.Policy.Version, because(v.Reason)), By: by})
		t.rollout, t.governed = nil, true
	})
}

func (c *Coordinator) endRollout(ctx context.Context, v wire.RolloutVerb, end func(*tx)) (policy.Policy, error) {
	l, err := c.leading()
	if err != nil {
		return policy.Policy{}, err
	}
	var p policy.Policy
	err = l.do(ctx, func(t *tx) error {
		switch {
		case t.rollout == nil:
			return &invalidError{"no policy is being rolled out", "assay policy show says which one is in force"}
		case t.rollout.Policy.Version != v.Version:
			return &invalidError{fmt.Sprintf("policy %d is being rolled out, not %d", t.rollout.Policy.Version, v.Version), "look at it with assay policy rollout, then say which one is meant"}
		}
		end(t)
		p = t.policy
		return nil
	})
	if _, again := api.Repeated(ctx); again && err == nil {
		return c.Policy(ctx)
	}
	return p, err
}

// promotion is due work: a rollout whose time has come. It waits for the first of its nodes to take it: a policy that none
// of them has tried yet is not for all of them.
func (l *lead) promotion(now time.Time) []func(*tx) error {
	due := func(r *rollout, at time.Time) bool { return r != nil && !r.Promote.IsZero() && !at.Before(r.Promote) }
	if !due(l.st.rollout, now) {
		return nil
	}
	if nodes, taken := l.canaries(l.st.rollout); len(nodes) > 0 && len(taken) == 0 {
		return nil
	}
	return []func(*tx) error{func(t *tx) error {
		if due(t.rollout, t.now) {
			t.promote("assay", "its time has come")
		}
		return nil
	}}
}

// changedPolicy names the nodes whose policy is another than before the transaction.
func (t *tx) changedPolicy() []string {
	var out []string
	for name := range t.base.nodes {
		was, is := policyIn(t.base.policy, t.base.rollout, name), policyIn(t.policy, t.rollout, name)
		if was.Version != is.Version || t.policy.Version != t.base.policy.Version {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
