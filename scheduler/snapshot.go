package scheduler

import (
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// A Snapshot is the fleet at one moment. It never changes and may be read by several goroutines at once.
type Snapshot struct {
	now    int64 // Unix seconds
	lay    *layout
	blocks []*block
	stride int     // one more than the most GPUs of any node
	counts []int32 // counts[sw*stride+k]: open nodes below switch sw with at least k usable GPUs
	full   []int32 // by leaf: nodes told of. A leaf whose wholly free nodes are as many is wholly free
	idle   []int32 // by leaf: wholly free nodes

	running      []*page // slots of Running, in no order
	work         int     // how many
	reservations []Reservation
	grades       []*NodeSet // by grade; nil where no node has it
}

// A Bar is why a node takes no work: whoever reads the reason wants to know since when, and by whom.
type Bar struct {
	Why   string    `json:"why"` // as "lost", "quarantined Q-7F3K", "hold: board swap"
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by,omitempty"`
}

// A Certificate is what the scheduler needs to know of a node's.
type Certificate struct {
	Serial  uint64       `json:"serial"`
	Level   checks.Level `json:"level"`
	GPUs    uint32       `json:"gpus"` // mask of those it covers
	Issued  time.Time    `json:"issued"`
	Expires time.Time    `json:"expires"` // grace does not count
}

// Running is work that has its nodes: reserved, starting, running or ending. It has them until an Ended event, whatever
// its end says: that is the one truth about when a GPU is free.
type Running struct {
	ID    string    `json:"id"`
	Nodes []Take    `json:"nodes"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end,omitzero"` // when its limit ends it at the latest; zero: nobody knows
}

// A Reservation keeps nodes for those who name it, in a window of time; for nobody, if Nobody is set, as for maintenance.
type Reservation struct {
	Name   string
	Start  time.Time
	End    time.Time // zero: until it is removed
	Nobody bool
	Nodes  *NodeSet
}

// Now is the snapshot's time.
func (s *Snapshot) Now() time.Time { return time.Unix(s.now, 0).UTC() }

// Tree is the fleet's topology.
func (s *Snapshot) Tree() *topo.Tree { return s.lay.tree }

// Len is the number of nodes of the tree, known or not.
func (s *Snapshot) Len() int { return len(s.lay.tree.Nodes) }

// A Node is one node of a snapshot.
type Node struct {
	Name        string
	Shape       *topo.Shape // nil: nobody has told of it yet
	Free        uint32      // GPUs that no work has, whole or in part
	Certificate Certificate // Level is NoLevel without one
	Grade       uint8       // measured performance class, 1 the best; 0: not measured
	Bar         *Bar        // why it takes no work; nil: it does
	Parts       []Part      // what is taken of its shared GPUs
}

// Node is the node of index i.
func (s *Snapshot) Node(i int32) Node {
	n := s.node(i)
	return Node{
		Name: s.lay.tree.Nodes[i], Shape: n.shape, Free: n.free, Grade: n.grade, Bar: n.bar, Parts: n.parts,
		Certificate: Certificate{Serial: n.serial, Level: n.level, GPUs: n.covered, Issued: stamp(n.issued), Expires: stamp(n.expires)},
	}
}

func (s *Snapshot) node(i int32) *node {
	c := s.cell(s.lay.cell[i])
	return &c.nodes[i-c.base]
}

// block is the block of cell ci, and its place there.
func (s *Snapshot) block(ci int32) (*block, int32) { return s.blocks[ci/blockCells], ci % blockCells }

func (s *Snapshot) cell(ci int32) *cell {
	b, k := s.block(ci)
	return b.cells[k]
}

// Running is all work that has nodes, in no order that means anything, but the same for the same snapshot.
func (s *Snapshot) Running() iter.Seq[*Running] {
	return func(yield func(*Running) bool) {
		for _, p := range s.running {
			for _, r := range p {
				if r != nil && !yield(r) {
					return
				}
			}
		}
	}
}

// Work is how many there are of Running.
func (s *Snapshot) Work() int { return s.work }

// Reservations lists those that are not over, by name.
func (s *Snapshot) Reservations() []Reservation { return s.reservations }

// Set is the set of the nodes given by index.
func (s *Snapshot) Set(nodes ...int32) *NodeSet {
	set := &NodeSet{s.lay, make([]uint64, s.lay.cells())}
	for _, i := range nodes {
		c, b := s.lay.bit(i)
		set.words[c] |= b
	}
	return set
}

// Named is the set of the nodes named. A name that the tree does not have is an error.
func (s *Snapshot) Named(names ...string) (*NodeSet, error) {
	nodes := make([]int32, len(names))
	for k, name := range names {
		i, ok := s.lay.tree.Node(name)
		if !ok {
			return nil, fmt.Errorf("node %s: not in the topology", name)
		}
		nodes[k] = i
	}
	return s.Set(nodes...), nil
}

// Edit starts a fleet at s, for what-if: to take out the work that ends by then, move the clock on, try a placement, and
// throw it all away. It costs a copy of the counts of each switch and a word for each block; blocks and cells are copied
// when they change. s stays as it is.
func (s *Snapshot) Edit() *Fleet {
	f := &Fleet{live: *s, slots: map[string]int{}}
	for i, p := range s.running {
		for j, r := range p {
			if r != nil {
				f.slots[r.ID] = i*pageSize + j
			} else {
				f.empty = append(f.empty, i*pageSize+j)
			}
		}
	}
	f.share()
	return f
}

// pageSize is how many of Running are copied when one changes.
const pageSize = 256

type page [pageSize]*Running

// never is later than every time.
const never = math.MaxInt64

// stamp is the time of Unix second s; the zero time for never and for 0, which is before every certificate.
func stamp(s int64) time.Time {
	if s == 0 || s == never {
		return time.Time{}
	}
	return time.Unix(s, 0).UTC()
}

// floor is the second that t is in.
func floor(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// ceil is the first whole second not before t.
func ceil(t time.Time) int64 {
	s := floor(t)
	if t.Nanosecond() > 0 {
		s++
	}
	return s
}

// Seconds is d in whole seconds, rounded up: what a limit or a demand is counted in.
func Seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
