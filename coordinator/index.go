package coordinator

import (
	"github.com/assay-gpu/assay/coordinator/guard"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// An index holds what follows from the nodes and effects and is asked for with every event: how many nodes there are to
// take from, and which effects wait for which node. It changes with them, so that no event walks over the whole fleet.
type index struct {
	counted guard.Census
	waiting map[string]map[string]struct{} // by node: ids of its pending effects
	// mostGPUs is of the node that has the most: what a job that asks for whole nodes is counted with.
	mostGPUs int

	lastCase map[string]string // by node: the case that was opened on it last
}

func newIndex() index {
	return index{counted: guard.Census{Leaf: map[string]int{}}, waiting: map[string]map[string]struct{}{}, lastCase: map[string]string{}}
}

// reindex makes the index anew, after nodes and effects were read from the store.
func (s *state) reindex() {
	s.index = newIndex()
	for _, n := range s.nodes {
		s.count(n, 1)
	}
	for id, e := range s.effects {
		s.await(e.Node, id)
	}
	for _, k := range s.cases {
		s.noteLast(k)
	}
}

func (s *state) noteLast(k wire.Case) {
	if last, ok := s.cases[s.lastCase[k.Node]]; !ok || !k.Opened.Before(last.Opened) {
		s.lastCase[k.Node] = k.ID
	}
}

func (s *state) setNode(n lifecycle.Node) {
	if before, ok := s.nodes[n.Name]; ok {
		s.count(before, -1)
	}
	s.nodes[n.Name] = n
	s.count(n, 1)
}

func (s *state) setEffect(e pending) {
	s.effects[e.ID] = e
	s.await(e.Node, e.ID)
}

func (s *state) dropEffect(id string) {
	node := s.effects[id].Node
	delete(s.effects, id)
	delete(s.waiting[node], id)
	if len(s.waiting[node]) == 0 {
		delete(s.waiting, node)
	}
}

// count adds a node to the census, or with -1 takes it out: those under our care and not retired or away for repair.
func (s *state) count(n lifecycle.Node, by int) {
	s.mostGPUs = max(s.mostGPUs, len(n.Inventory.GPUs))
	if n.State == lifecycle.Retired || n.State == lifecycle.RMA {
		return
	}
	s.counted.Schedulable += by
	if n.Leaf == "" {
		return
	}
	if s.counted.Leaf[n.Leaf] += by; s.counted.Leaf[n.Leaf] == 0 {
		delete(s.counted.Leaf, n.Leaf)
	}
}

func (s *state) await(node, id string) {
	if s.waiting[node] == nil {
		s.waiting[node] = map[string]struct{}{}
	}
	s.waiting[node][id] = struct{}{}
}

// census is how many nodes a budget is a share of. It is good until the state changes: it must not be kept or written to.
func (s *state) census() guard.Census { return s.counted }

// effectsOf returns the pending effects of a node in the order they must be carried out.
func (s *state) effectsOf(node string) []pending {
	var es []pending
	for id := range s.waiting[node] {
		es = append(es, s.effects[id])
	}
	sortPending(es)
	return es
}
