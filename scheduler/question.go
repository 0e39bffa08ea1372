package scheduler

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// A Question is a gang with the snapshot it was asked of, to be kept: an answer that surprised somebody can be sent to
// somebody else, and asked again.
type Question struct {
	Gang        Gang            `json:"gang"`
	Within      []string        `json:"within,omitempty"` // hostlists: only nodes in each of these
	Except      []string        `json:"except,omitempty"` // hostlists: and in none of these
	Snapshot    json.RawMessage `json:"snapshot"`         // as Save writes it
	Fingerprint string          `json:"fingerprint"`      // of the snapshot, in hex
}

// Keep is the question that Place(s, g) answers.
func Keep(s *Snapshot, g Gang) Question {
	sum := s.Fingerprint()
	q := Question{Gang: g, Snapshot: s.Save(), Fingerprint: hex.EncodeToString(sum[:])}
	for _, set := range g.Within {
		q.Within = append(q.Within, s.names(set))
	}
	for _, set := range g.Except {
		q.Except = append(q.Except, s.names(set))
	}
	return q
}

func (s *Snapshot) names(set *NodeSet) string {
	var names []string
	for _, i := range set.Nodes() {
		names = append(names, s.lay.tree.Nodes[i])
	}
	return hostlist.Compress(names)
}

// Load gives back snapshot and gang. What was changed since it was kept is an error.
func (q Question) Load() (*Snapshot, Gang, error) {
	s, err := Load(q.Snapshot)
	if err != nil {
		return nil, Gang{}, err
	}
	if sum := s.Fingerprint(); hex.EncodeToString(sum[:]) != q.Fingerprint {
		return nil, Gang{}, fmt.Errorf("read a saved question: its snapshot has the fingerprint %x, and %.64s is written beside it", sum, q.Fingerprint)
	}
	g := q.Gang
	sets := func(lists []string) (out []*NodeSet, err error) {
		for _, list := range lists {
			names, err := hostlist.Expand(list)
			if err != nil {
				return nil, err
			}
			set, err := s.Named(names...)
			if err != nil {
				return nil, err
			}
			out = append(out, set)
		}
		return out, nil
	}
	if g.Within, err = sets(q.Within); err == nil {
		g.Except, err = sets(q.Except)
	}
	if err != nil {
		return nil, Gang{}, fmt.Errorf("read a saved question: %w", err)
	}
	return s, g, nil
}

// Where is the nodes of a plan as a hostlist, and as a line for each leaf: "s1: gpu[001-004]".
func (s *Snapshot) Where(p Plan) (nodes string, leaves []string) {
	tree := s.lay.tree
	var names []string
	by := map[string][]string{}
	for _, t := range p.Nodes {
		name, leaf := tree.Nodes[t.Node], tree.Switches[tree.Leaf[t.Node]].Name
		names = append(names, name)
		by[leaf] = append(by[leaf], name)
	}
	for _, leaf := range slices.Sorted(maps.Keys(by)) {
		leaves = append(leaves, leaf+": "+hostlist.Compress(by[leaf]))
	}
	return hostlist.Compress(names), leaves
}
