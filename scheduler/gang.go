package scheduler

import (
	"fmt"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// A Gang is what one job asks for: so many nodes with so many GPUs each, all at once. The zero value of each field but ID
// and Nodes is the usual wish.
type Gang struct {
	ID    string `json:"id"`
	Nodes int    `json:"nodes"`           // different nodes, at least 1
	GPUs  int    `json:"gpus,omitempty"`  // GPUs on each; 0: the whole node, however many it has
	Whole bool   `json:"whole,omitempty"` // nobody else on its nodes, though it asks for fewer GPUs than they have
	Ranks int    `json:"ranks,omitempty"` // ranks on each node; 0: one per GPU
	Share Share  `json:"share,omitzero"`  // instead of GPUs: a part of one GPU on each node

	Limit time.Duration `json:"limit,omitempty"` // how long it runs at most; 0: nobody said

	// Certificate. Without Level it is quick, or quick-mig for a MIG part.
	Level        checks.Level  `json:"level,omitempty"`
	MaxAge       time.Duration `json:"max_age,omitempty"`       // issued no longer ago; 0: whenever
	MinRemaining time.Duration `json:"min_remaining,omitempty"` // holds so much longer; 0: the smaller of Limit and an hour
	Through      bool          `json:"through,omitempty"`       // holds for the whole of Limit

	// Closeness.
	Near       Nearness      `json:"near,omitempty"`
	Height     int           `json:"height,omitempty"`      // with Required and Preferred: the highest common switch, 0 a leaf
	Switches   int           `json:"switches,omitempty"`    // --switches=N: leaf switches at most; 0: any number
	SwitchWait time.Duration `json:"switch_wait,omitempty"` // the @wait of it: how long it insists; the queue cuts it to max_switch_wait
	Waited     time.Duration `json:"waited,omitempty"`      // since it was first looked at

	// Shape inside the job; Parallel.Shape fills these in (--parallel).
	Group         int `json:"group,omitempty"`          // nodes that share one NVLink domain; 0 or 1: none need to
	Segment       int `json:"segment,omitempty"`        // nodes under one switch of SegmentHeight; divides Nodes; 0: no segments
	SegmentHeight int `json:"segment_height,omitempty"` // 0: a leaf
	Joined        int `json:"joined,omitempty"`         // GPUs of a node in groups of so many that NVLink joins; 0: as it comes

	// Policy.
	PerLeaf   int    `json:"per_leaf,omitempty"`   // nodes under one leaf at most, so that one failure takes few; 0: no matter
	Spread    bool   `json:"spread,omitempty"`     // the emptiest leaves and nodes first, in place of the fullest
	SameGrade bool   `json:"same_grade,omitempty"` // all nodes of one measured performance class
	Reserved  string `json:"reserved,omitempty"`   // the reservation it runs in

	Within []*NodeSet `json:"-"` // only nodes in each of these: partition, features, required nodes
	Except []*NodeSet `json:"-"` // and in none of these
}

// Nearness says how close together a gang must be. Whatever it says, closer is better.
type Nearness uint8

const (
	Closest   Nearness = iota // as close as can be had now
	Required                  // under one switch of Gang.Height or lower, or not at all
	Preferred                 // as Required if that can be had now, else as Closest; the plan says which
	Anywhere                  // closeness is worth nothing: fill what is already broken, over roots without a common parent too
)

var nearnessNames = [...]string{"closest", "required", "preferred", "anywhere"}

func (n Nearness) String() string {
	if int(n) < len(nearnessNames) {
		return nearnessNames[n]
	}
	return "nearness " + fmt.Sprint(uint8(n))
}

// MarshalText writes the name.
func (n Nearness) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads a name.
func (n *Nearness) UnmarshalText(b []byte) error {
	for i, s := range nearnessNames {
		if s == string(b) {
			*n = Nearness(i)
			return nil
		}
	}
	return fmt.Errorf("nearness %q: want closest, required, preferred or anywhere", b)
}

// hour is the longest that a certificate must outlive a start for which nobody named a time.
const hour = time.Hour

// level is the depth of certificate the gang needs.
func (g *Gang) level() checks.Level {
	switch {
	case g.Level != checks.NoLevel:
		return g.Level
	case g.Share.Kind == MIG:
		return checks.QuickMIG
	}
	return checks.Quick
}

// remaining is how much longer certificates must hold when it starts.
func (g *Gang) remaining() time.Duration {
	switch {
	case g.Through && g.Limit > 0:
		return g.Limit
	case g.MinRemaining > 0:
		return g.MinRemaining
	case g.Limit > 0:
		return min(g.Limit, hour)
	}
	return hour
}

// insists reports whether --switches still holds it back.
func (g *Gang) insists() bool {
	return g.Switches > 0 && (g.SwitchWait <= 0 || g.Waited < g.SwitchWait)
}

// A GangError says which field of a gang cannot be as it is. An unknown or impossible wish is never passed over.
type GangError struct{ ID, Field, Text string }

func (e *GangError) Error() string { return "gang " + e.ID + ": " + e.Field + ": " + e.Text }

// Valid returns a *GangError for a gang that no fleet could place.
func (g *Gang) Valid() error {
	bad := func(field, format string, args ...any) error {
		return &GangError{g.ID, field, fmt.Sprintf(format, args...)}
	}
	switch {
	case g.Nodes < 1:
		return bad("nodes", "%d; want at least 1", g.Nodes)
	case g.GPUs < 0 || g.GPUs > topo.MaxGPUs:
		return bad("gpus", "%d on a node; want 0 to %d", g.GPUs, topo.MaxGPUs)
	case g.Share.Kind != NoShare && g.GPUs != 0:
		return bad("share", "a part of one GPU, and %d whole ones", g.GPUs)
	case g.Share.Kind != NoShare && g.Whole:
		return bad("whole", "a whole node for a part of one GPU")
	case g.Share.Kind != NoShare && (g.Group > 1 || g.Segment > 0 || g.Joined > 1):
		return bad("share", "parts of GPUs have no segments and no NVLink")
	case g.Through && g.Limit <= 0:
		return bad("through", "a certificate for the whole limit, but no limit")
	case g.Through && g.MinRemaining > 0:
		return bad("min_remaining", "given beside through, which says it already")
	case g.Limit < 0 || g.MaxAge < 0 || g.MinRemaining < 0 || g.SwitchWait < 0:
		return bad("time", "a time below nothing")
	case g.Height < 0 || g.SegmentHeight < 0:
		return bad("height", "a switch below the leaves")
	case int(g.Near) >= len(nearnessNames):
		return bad("near", "%s", g.Near)
	case g.Switches < 0 || g.PerLeaf < 0 || g.Ranks < 0:
		return bad("count", "a count below nothing")
	case g.Segment < 0 || g.Segment > 0 && g.Nodes%g.Segment != 0:
		return bad("segment", "%d nodes are not a whole number of segments of %d", g.Nodes, g.Segment)
	case g.Group < 0 || g.Group > 1 && g.Nodes%g.Group != 0:
		return bad("group", "%d nodes are not a whole number of NVLink groups of %d", g.Nodes, g.Group)
	case g.Group > 1 && g.Segment > 0 && g.Segment%g.Group != 0:
		return bad("group", "a segment of %d nodes is not a whole number of NVLink groups of %d", g.Segment, g.Group)
	case g.PerLeaf > 0 && g.PerLeaf < max(g.Group, 1):
		return bad("per_leaf", "%d nodes a leaf, but NVLink groups of %d", g.PerLeaf, g.Group)
	case g.PerLeaf > 0 && g.Segment > 0 && g.SegmentHeight == 0 && g.PerLeaf < g.Segment:
		return bad("per_leaf", "%d nodes a leaf, but segments of %d", g.PerLeaf, g.Segment)
	case g.Joined > 1 && g.GPUs > 0 && g.GPUs%g.Joined != 0:
		return bad("joined", "%d GPUs of a node are not a whole number of NVLink groups of %d", g.GPUs, g.Joined)
	}
	return g.Share.valid(g.ID)
}

// A Parallel is the shape of a training job: TP GPUs share each layer, PP stages follow each other, DP replicas compute
// the same. TP stays in an NVLink domain, the PP stages of a replica under one leaf, DP goes across.
type Parallel struct{ TP, PP, DP int }

// Shape fills in g's nodes and slices for nodes of perNode GPUs. It returns a *GangError when groups would straddle nodes.
func (p Parallel) Shape(g Gang, perNode int) (Gang, error) {
	bad := func(format string, args ...any) (Gang, error) {
		return g, &GangError{g.ID, "parallel", fmt.Sprintf(format, args...)}
	}
	if p.TP < 1 || p.PP < 1 || p.DP < 1 || perNode < 1 {
		return bad("TP %d, PP %d, DP %d on nodes of %d GPUs: want at least 1 of each", p.TP, p.PP, p.DP, perNode)
	}
	replica := p.TP * p.PP
	total := replica * p.DP
	g.GPUs, g.Ranks, g.Group, g.Segment, g.SegmentHeight, g.Joined = perNode, 0, 0, 0, 0, min(p.TP, perNode)
	switch {
	case p.TP > perNode && p.TP%perNode != 0:
		return bad("a tensor-parallel group of %d is not a whole number of nodes of %d GPUs", p.TP, perNode)
	case p.TP <= perNode && perNode%p.TP != 0:
		return bad("a node of %d GPUs is not a whole number of tensor-parallel groups of %d", perNode, p.TP)
	case total < perNode:
		g.Nodes, g.GPUs = 1, total
		return g, nil
	case total%perNode != 0:
		return bad("%d GPUs are not a whole number of nodes of %d", total, perNode)
	case replica > perNode && replica%perNode != 0, replica <= perNode && perNode%replica != 0:
		return bad("a replica of %d GPUs would share a node of %d with part of another", replica, perNode)
	}
	g.Nodes = total / perNode
	if p.TP > perNode {
		g.Group = p.TP / perNode
	}
	if replica > perNode {
		g.Segment = replica / perNode
	}
	return g, nil
}
