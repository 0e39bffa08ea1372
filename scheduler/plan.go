package scheduler

import (
	"time"
)

// A Plan is a placement not yet committed, or the reason why there is none. A gang is never placed in part: Nodes has one
// entry for each of its nodes or none at all.
type Plan struct {
	Gang    string    `json:"gang"`
	At      time.Time `json:"at"`              // the snapshot's time
	Nodes   []Take    `json:"nodes,omitempty"` // in rank order
	Cost    Cost      `json:"cost,omitzero"`
	Policy  string    `json:"policy"`            // how equal places were told apart: packed, spread or anywhere
	Refused *Refusal  `json:"refused,omitempty"` // set when Nodes is empty
}

// policy names how g is placed: what surprises people should at least have a name.
func policy(g *Gang) string {
	switch {
	case g.Near == Anywhere:
		return "anywhere: the fullest leaves first"
	case g.Spread:
		return "spread: close together, the emptiest first"
	}
	return "packed: close together, the tightest first"
}

// OK reports whether the gang has a place.
func (p *Plan) OK() bool { return len(p.Nodes) > 0 }

// A Take is what a gang takes of one node: whole GPUs, or a part of one.
type Take struct {
	Node int32  `json:"node"`
	GPUs uint32 `json:"gpus,omitempty"` // mask
	Part Part   `json:"part,omitzero"`
}

// A Cost says how good a place is, in the order of preference of Place: each field matters only where all before it are
// equal, and less is better.
type Cost struct {
	Height int `json:"height"` // of the lowest switch above all its nodes; one above the highest where there is none
	Leaves int `json:"leaves"` // leaf switches it touches
	Waste  int `json:"waste"`  // GPUs left free on nodes it takes a part of
	Left   int `json:"left"`   // nodes that it could have had under the leaves it touches, and leaves free
	Broken int `json:"broken"` // leaves it touches that were wholly free
}

// Less reports whether c is better than d.
func (c Cost) Less(d Cost) bool {
	switch {
	case c.Height != d.Height:
		return c.Height < d.Height
	case c.Leaves != d.Leaves:
		return c.Leaves < d.Leaves
	case c.Waste != d.Waste:
		return c.Waste < d.Waste
	case c.Left != d.Left:
		return c.Left < d.Left
	}
	return c.Broken < d.Broken
}
