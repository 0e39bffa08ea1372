package coordinator

import (
	"cmp"
	"sync"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
)

// policies resolves the fleet's policy for single nodes, as each node's agent does by itself. A fleet's nodes share few
// resolved policies, so each is made once.
type policies struct {
	mu     sync.Mutex
	tables map[int]*resolved // by version
}

type resolved struct {
	table *policy.Table
	made  map[policy.Match]policy.Policy
}

// policiesKept is for how many versions of the policy the tables are kept: the one in force, the one before it, and one
// that is being rolled out.
const policiesKept = 3

// of gives the policy p for one node. sku is asked only when something in p depends on it.
func (ps *policies) of(p policy.Policy, node string, sku func() string) policy.Policy {
	if len(p.Overrides) == 0 && !shared(p) {
		return p
	}
	if p.Version == 0 {
		return p.For(node, sku()) // not given out, so nothing tells it from another
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	r, ok := ps.tables[p.Version]
	if !ok {
		r = &resolved{table: policy.NewTable(p), made: map[policy.Match]policy.Policy{}}
		if ps.tables == nil {
			ps.tables = map[int]*resolved{}
		}
		for len(ps.tables) >= policiesKept {
			delete(ps.tables, sortedKeys(ps.tables)[0])
		}
		ps.tables[p.Version] = r
	}
	m := r.table.Match(node, sku())
	made, ok := r.made[m]
	if !ok {
		made = r.table.Resolve(m)
		r.made[m] = made
	}
	return made
}

// shared reports whether a check of p acts on a share of the nodes.
func shared(p policy.Policy) bool {
	for _, c := range p.Checks {
		if c.Share != 0 {
			return true
		}
	}
	return false
}

// skuOf is the product of a node: as last told or, before its first report, as accepted.
func skuOf(n lifecycle.Node) string { return cmp.Or(n.Inventory.SKU(), n.Expected.SKU()) }

// policyOf is the policy by which a node's events are judged.
func (s *state) policyOf(n lifecycle.Node) policy.Policy {
	return s.policies.of(policyIn(s.policy, s.rollout, n.Name), n.Name, func() string { return skuOf(n) })
}

// policyOf is the policy by which a node's events are judged.
func (t *tx) policyOf(n lifecycle.Node) policy.Policy {
	return t.base.policies.of(policyIn(t.policy, t.rollout, n.Name), n.Name, func() string { return skuOf(n) })
}

// policyFor is the policy by which the agent made a report.
func (t *tx) policyFor(r checks.Report) policy.Policy {
	n, _ := t.node(r.Node)
	return t.base.policies.of(policyIn(t.policy, t.rollout, r.Node), r.Node, func() string { return cmp.Or(r.Inventory.SKU(), skuOf(n)) })
}
