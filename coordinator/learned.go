package coordinator

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// learnEvery is how often what the nodes show is summed up. A cycle of the agents is 30 s.
const learnEvery = time.Minute

// shows keeps what each node last showed. It stays in memory: a new leader hears it anew within a cycle.
type shows struct {
	mu   sync.Mutex
	last map[string]policy.Shown
}

func (s *shows) put(node string, inv checks.Inventory) {
	sku := inv.SKU()
	if sku == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]policy.Shown{}
	}
	s.last[node] = policy.Shown{Node: node, SKU: sku, Driver: inv.Driver, Values: inv.Shows}
}

// of gives what the enrolled nodes show.
func (s *shows) of(nodes map[string]lifecycle.Node) []policy.Shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []policy.Shown
	for name, v := range s.last {
		if n, ok := nodes[name]; ok && n.State != lifecycle.Retired {
			out = append(out, v)
		}
	}
	return out
}

// Learned implements api.Policies: what the nodes of each product show now.
func (c *Coordinator) Learned(_ context.Context) (out []policy.Learned, err error) {
	err = c.read(func(l *lead, s *state, _ time.Time) error {
		out = policy.Learn(l.shows.of(s.nodes), s.policy.Baseline)
		return nil
	})
	return out, err
}

// learn keeps what was learned up to date in the state, whence the agents have it.
func (l *lead) learn(ctx context.Context) error {
	for pause(ctx, learnEvery) {
		if err := l.learnNow(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("what nodes show was not summed up", "err", err)
		}
	}
	return context.Cause(ctx)
}

func (l *lead) learnNow(ctx context.Context) error {
	l.mu.RLock()
	now := policy.Learn(l.shows.of(l.st.nodes), l.st.policy.Baseline)
	of := map[string]int{}
	for _, n := range l.st.nodes {
		if n.State != lifecycle.Retired {
			of[skuOf(n)]++
		}
	}
	next := relearned(l.st.learned, now, of)
	same := maps.Equal(l.st.learned, next)
	l.mu.RUnlock()
	if same {
		return nil
	}
	return l.do(ctx, func(t *tx) error {
		for _, sku := range sortedKeys(next) {
			if next[sku] != t.learned[sku] {
				t.record(wire.HistoryEntry{Event: fmt.Sprintf("learned sku=%s shows=%s", quote(sku), quote(next[sku].JSON())), By: "assay"})
			}
		}
		t.learned = next
		return nil
	})
}

// relearned gives the sets by product after those of before, where now is what the nodes that were heard show and of how
// many nodes a product has. What was learned of a product stays until most of its nodes were heard: a new leader has heard
// none. It is pure.
func relearned(before map[string]policy.Set, now []policy.Learned, of map[string]int) map[string]policy.Set {
	out := map[string]policy.Set{}
	for sku, s := range before {
		if of[sku] > 0 {
			out[sku] = s
		}
	}
	for _, l := range now {
		if 2*l.Nodes <= of[l.SKU] {
			continue
		}
		if s := l.Set(); !s.Empty() {
			out[l.SKU] = s
		} else {
			delete(out, l.SKU)
		}
	}
	return out
}

// relearnedNodes names the nodes for whose product something else was learned.
func (t *tx) relearnedNodes() []string {
	var out []string
	if maps.Equal(t.learned, t.base.learned) {
		return nil
	}
	for name, n := range t.base.nodes {
		if sku := skuOf(n); t.learned[sku] != t.base.learned[sku] {
			out = append(out, name)
		}
	}
	return out
}
