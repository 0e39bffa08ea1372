package coordinator

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/coordinator/guard"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Whatever transactions are published, the index says what a walk over all nodes and effects would, and a transaction's
// size is the number of its operations.
func TestIndexFollowsTheState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newState()
		s.counters.History = rapid.SampledFrom([]uint64{0, historyKept - 3, historyKept, historyKept + 100}).Draw(rt, "history")
		states := []lifecycle.State{lifecycle.Certified, lifecycle.Draining, lifecycle.Retired, lifecycle.RMA}
		for i := range rapid.IntRange(1, 12).Draw(rt, "transactions") {
			tx := s.begin(env{}, noon)
			for range rapid.IntRange(0, 4).Draw(rt, "nodes") {
				n := lifecycle.Node{
					Name: fmt.Sprint("n", rapid.IntRange(0, 4).Draw(rt, "node")), State: rapid.SampledFrom(states).Draw(rt, "state"),
					Leaf: rapid.SampledFrom([]string{"", "s1", "s2"}).Draw(rt, "leaf"),
				}
				tx.nodes[n.Name] = n
				if rapid.Bool().Draw(rt, "recorded") {
					tx.record(wire.HistoryEntry{Node: n.Name})
				}
				if rapid.Bool().Draw(rt, "effect") {
					tx.effect(lifecycle.Effect{Kind: lifecycle.EffectDrain, Node: n.Name})
				}
			}
			for _, id := range sortedKeys(s.effects) {
				if rapid.Bool().Draw(rt, "ticked off") {
					tx.tick(id)
				}
			}
			if rapid.Bool().Draw(rt, "unknown ticked off") {
				tx.tick("e999")
			}
			tx.guarded, tx.governed = rapid.Bool().Draw(rt, "guarded"), rapid.Bool().Draw(rt, "governed")
			if got, want := tx.size(), len(tx.ops()); got != want {
				rt.Fatalf("size %d of %d operations", got, want)
			}
			tx.publish(uint64(i))
			if got, want := s.census(), walk(s); !reflect.DeepEqual(got, want) {
				rt.Fatalf("census %v, want %v", got, want)
			}
			for _, name := range []string{"n0", "n1", "n2", "n3", "n4"} {
				if got, want := ids(s.effectsOf(name)), ids(walkEffects(s, name)); !slices.Equal(got, want) {
					rt.Fatalf("effects of %s: %v, want %v", name, got, want)
				}
			}
			kept := s.index
			s.reindex()
			if !reflect.DeepEqual(kept, s.index) {
				rt.Fatalf("index %v, made anew %v", kept, s.index)
			}
		}
	})
}

func walk(s *state) guard.Census {
	c := guard.Census{Leaf: map[string]int{}}
	for _, n := range s.nodes {
		if n.State == lifecycle.Retired || n.State == lifecycle.RMA {
			continue
		}
		c.Schedulable++
		if n.Leaf != "" {
			c.Leaf[n.Leaf]++
		}
	}
	return c
}

func walkEffects(s *state, node string) (es []pending) {
	for _, e := range s.effects {
		if e.Node == node {
			es = append(es, e)
		}
	}
	sortPending(es)
	return es
}

func ids(es []pending) (out []string) {
	for _, e := range es {
		out = append(out, e.ID)
	}
	return out
}
