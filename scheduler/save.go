package scheduler

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// A saved snapshot is JSON: an answer that surprised somebody can be kept, and asked again.
type saved struct {
	Version      int                `json:"version"`
	Now          time.Time          `json:"now"`
	Topology     string             `json:"topology"` // topology.conf
	Order        []string           `json:"order"`    // hostlists: nodes by index, outside the tree too
	Shapes       []*topo.Shape      `json:"shapes"`
	Nodes        []savedNode        `json:"nodes"` // by index, those that are known
	Running      []*Running         `json:"running,omitempty"`
	Reservations []savedReservation `json:"reservations,omitempty"`
}

type savedNode struct {
	Node        int32        `json:"n"`
	Shape       int          `json:"s"`
	Grade       uint8        `json:"g,omitempty"`
	Certificate *Certificate `json:"c,omitempty"`
	Bar         *Bar         `json:"bar,omitempty"`
}

type savedReservation struct {
	Name   string    `json:"name"`
	Start  time.Time `json:"start"`
	End    time.Time `json:"end,omitzero"`
	Nobody bool      `json:"nobody,omitempty"`
	Nodes  string    `json:"nodes"` // hostlist
}

const (
	saveVersion = 1
	unseen      = -1 // shape of a node that nobody has told of
)

// Save writes all that s says. The same facts give the same bytes, whatever the events that led to them.
func (s *Snapshot) Save() []byte {
	t := s.lay.tree
	out := saved{Version: saveVersion, Now: s.Now(), Topology: t.Format(), Order: runs(t.Nodes)}
	shape := map[*topo.Shape]int{}
	for i := range int32(s.Len()) {
		n := s.Node(i)
		if n.Shape == nil && n.Bar == nil && n.Certificate.Level == checks.NoLevel {
			continue
		}
		k, known := shape[n.Shape]
		switch {
		case n.Shape == nil:
			k = unseen
		case !known:
			k = slices.IndexFunc(out.Shapes, n.Shape.Equal)
			if k < 0 {
				k = len(out.Shapes)
				out.Shapes = append(out.Shapes, n.Shape)
			}
			shape[n.Shape] = k
		}
		x := savedNode{Node: i, Shape: k, Grade: n.Grade, Bar: n.Bar}
		if n.Certificate.Level != checks.NoLevel {
			x.Certificate = &n.Certificate
		}
		out.Nodes = append(out.Nodes, x)
	}
	for r := range s.Running() {
		out.Running = append(out.Running, r)
	}
	slices.SortFunc(out.Running, func(a, b *Running) int { return cmp.Compare(a.ID, b.ID) })
	for _, r := range s.reservations {
		var names []string
		for _, i := range r.Nodes.Nodes() {
			names = append(names, t.Nodes[i])
		}
		out.Reservations = append(out.Reservations, savedReservation{r.Name, r.Start, r.End, r.Nobody, hostlist.Compress(names)})
	}
	data, err := json.Marshal(out)
	if err != nil {
		panic("scheduler: save a snapshot: " + err.Error()) // all of its fields can be written
	}
	return data
}

// runs writes names in their order, as few hostlists as keep it.
func runs(names []string) []string {
	var out []string
	for part := range slices.Chunk(names, 1024) {
		short := hostlist.Compress(part)
		if back, err := hostlist.Expand(short); err == nil && slices.Equal(back, part) {
			out = append(out, short)
		} else {
			out = append(out, part...)
		}
	}
	return out
}

// Fingerprint is a digest of all that s says. Two snapshots with the same one give the same answers.
func (s *Snapshot) Fingerprint() [sha256.Size]byte { return sha256.Sum256(s.Save()) }

// Load reads what Save wrote.
func Load(data []byte) (*Snapshot, error) {
	var in saved
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("read a saved snapshot: %w", err)
	}
	if in.Version != saveVersion {
		return nil, fmt.Errorf("read a saved snapshot: version %d, want %d", in.Version, saveVersion)
	}
	var order []string
	for _, h := range in.Order {
		names, err := hostlist.Expand(h)
		if err != nil {
			return nil, fmt.Errorf("read a saved snapshot: nodes: %w", err)
		}
		order = append(order, names...)
	}
	t, _ := topo.Parse(in.Topology, order) // what is odd about it was odd before
	if t == nil || !slices.Equal(t.Nodes, order) {
		return nil, fmt.Errorf("read a saved snapshot: its topology does not give its %d nodes in their order", len(order))
	}
	for i, shape := range in.Shapes {
		if !shape.Ready() {
			return nil, fmt.Errorf("read a saved snapshot: shape %d is no shape", i)
		}
	}
	f := NewFleet(t, in.Now)
	for _, x := range in.Nodes {
		if x.Node < 0 || int(x.Node) >= len(t.Nodes) || x.Shape < unseen || x.Shape >= len(in.Shapes) {
			return nil, fmt.Errorf("read a saved snapshot: node %d of shape %d", x.Node, x.Shape)
		}
		if x.Shape != unseen {
			if err := f.See(x.Node, in.Shapes[x.Shape], x.Grade); err != nil {
				return nil, fmt.Errorf("read a saved snapshot: %w", err)
			}
		}
		if x.Certificate != nil {
			f.Certify(x.Node, *x.Certificate)
		}
		if x.Bar != nil {
			f.Bar(x.Node, *x.Bar)
		}
	}
	for _, r := range in.Running {
		if err := f.Start(r); err != nil {
			return nil, fmt.Errorf("read a saved snapshot: %w", err)
		}
	}
	for _, r := range in.Reservations {
		names, err := hostlist.Expand(r.Nodes)
		if err != nil {
			return nil, fmt.Errorf("read a saved snapshot: reservation %s: %w", r.Name, err)
		}
		set, err := f.View().Named(names...)
		if err != nil {
			return nil, fmt.Errorf("read a saved snapshot: reservation %s: %w", r.Name, err)
		}
		f.Reserve(Reservation{r.Name, r.Start, r.End, r.Nobody, set})
	}
	return f.Snapshot(), nil
}
