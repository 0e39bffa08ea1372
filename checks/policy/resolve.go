package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// For gives the policy as it holds for one node with one product: overrides applied, shares settled. sku is the product
// name of its GPUs, empty when that is not known; then no override by product fits. What it gives is a policy like any
// other, without overrides, and For of it is the same again.
func (p Policy) For(node, sku string) Policy {
	t := NewTable(p)
	return t.Resolve(t.Match(node, sku))
}

// A Table resolves one policy for many nodes: the node lists are read once, and what Match gives is the same for all nodes
// that one Resolve serves.
type Table struct {
	base   Policy
	nodes  []map[string]bool // by override; nil: every node
	shares []share
}

// share is a share that some policy made of the base may hold, of one check.
type share struct {
	check string
	of    Share
}

// A Match says which overrides fit a node and which shares it is in. It is comparable, and few of a fleet's differ.
type Match string

// NewTable reads p's overrides. One whose nodes cannot be read fits no node; Validate refuses it.
func NewTable(p Policy) *Table {
	t := &Table{base: p}
	found := map[share]bool{}
	note := func(checks map[string]Check) {
		for id, c := range checks {
			if c.Share > 0 && c.Share < 1 {
				found[share{id, c.Share}] = true
			}
		}
	}
	note(p.Checks)
	for _, o := range p.Overrides {
		var nodes map[string]bool
		if len(o.Nodes) > 0 {
			nodes = map[string]bool{}
			for _, list := range o.Nodes {
				names, err := hostlist.Expand(list)
				if err != nil {
					continue
				}
				for _, n := range names {
					nodes[n] = true
				}
			}
		}
		t.nodes = append(t.nodes, nodes)
		if made, err := (Policy{}).with(o.Set); err == nil {
			note(made.Checks)
		}
	}
	for s := range found {
		t.shares = append(t.shares, s)
	}
	slices.SortFunc(t.shares, func(a, b share) int { return cmp.Or(cmp.Compare(a.check, b.check), cmp.Compare(a.of, b.of)) })
	return t
}

// Match says what of the policy fits a node.
func (t *Table) Match(node, sku string) Match {
	m := make([]byte, len(t.base.Overrides)+len(t.shares))
	for i, o := range t.base.Overrides {
		fits := (t.nodes[i] == nil || t.nodes[i][node]) &&
			(len(o.SKU) == 0 || slices.ContainsFunc(o.SKU, func(pattern string) bool { return MatchSKU(pattern, sku) }))
		m[i] = letter(fits)
	}
	for i, s := range t.shares {
		m[len(t.base.Overrides)+i] = letter(InShare(s.check, node, s.of))
	}
	return Match(m)
}

func letter(yes bool) byte {
	if yes {
		return 'y'
	}
	return '-'
}

// Resolve gives the policy of the nodes with that match. An override whose values are not a policy's sets nothing.
func (t *Table) Resolve(m Match) Policy {
	p := t.base
	for i, o := range t.base.Overrides {
		if m[i] == 'y' {
			if made, err := p.with(o.Set); err == nil {
				p = made
			}
		}
	}
	p.Overrides = nil
	p.Checks = maps.Clone(p.Checks)
	in := map[share]bool{}
	for i, s := range t.shares {
		in[s] = m[len(t.base.Overrides)+i] == 'y'
	}
	for id, c := range p.Checks {
		if c.Share == 0 {
			continue
		}
		// Outside of the share the check observes where it would have acted; where it would not, nothing changes.
		if s := (share{id, c.Share}); c.Share < 1 && !in[s] && (c.Mode == Act || c.Mode == "" && p.Mode == Act) {
			c.Mode = Observe
		}
		c.Share = 0
		p.Checks[id] = c
	}
	return p
}

// InShare reports whether a node is in a share of the nodes. Which nodes are is settled by their names: the same at every
// call and on every machine, others for each name of what is shared out, and a node that is in a share is in every larger
// one.
func InShare(what, node string, s Share) bool { return Lot(what, node) < float64(s) }

// Lot is the number from 0 to below 1 that a node draws when what is shared out: it is in every share that is greater.
func Lot(what, node string) float64 {
	sum := sha256.Sum256([]byte(what + "\x00" + node))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
}
