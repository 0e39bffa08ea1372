package guard

import (
	"hash/fnv"
	"slices"
	"time"
)

// The books are one value in the store, which takes 1.5 MiB at most, and they must hold when the whole fleet fails at
// once. So nodes are kept by name only as far as decisions need it; beyond that they are counted.
const (
	hardNames   = 1024 // nodes with a hard fault kept by name: 1 % of a hundred thousand
	seenNames   = 512  // the same for one reason's sightings
	seenTotal   = 4096 // and for all reasons together
	seenReasons = 64   // reasons whose sightings are kept
	nodeReasons = 16   // reasons that one node may show within the window: it may be out of its mind
	stormNames  = 64   // nodes of a storm kept by name
	pagesKept   = 1024
	spentKept   = 3000 // charges beyond every budget ("refuse") are dropped above this: no budget has room by then

	tallyStep  = time.Minute // how finely a tally knows when
	sketchBits = 1 << 17
)

// A Tally is the different nodes that something happened to within a window, to the minute: the first ones by name, in
// the order in which they came, and beyond those a number.
type Tally []Minute

// A Minute is what a tally got within a minute. It leaves a window with its first entry.
type Minute struct {
	At          time.Time `json:"at"`                    // its first entry
	Schedulable int       `json:"schedulable,omitempty"` // the fleet's size just before that
	Nodes       []string  `json:"nodes,omitempty"`
	More        float64   `json:"more,omitempty"`    // nodes not named, by estimate
	Chassis     []string  `json:"chassis,omitempty"` // different ones, as many as a storm asks for
}

// Count is how many different nodes the tally holds: exact as long as all are named, else within about one in a hundred.
func (t Tally) Count() int {
	n, more := 0, 0.0
	for _, m := range t {
		n += len(m.Nodes)
		more += m.More
	}
	return n + int(more+0.5)
}

func (t Tally) named() int {
	n := 0
	for _, m := range t {
		n += len(m.Nodes)
	}
	return n
}

func (t Tally) has(node string) bool {
	return slices.ContainsFunc(t, func(m Minute) bool { return slices.Contains(m.Nodes, node) })
}

// since is the tally without what lies before the window of length d that ends at t.
func (t Tally) since(at time.Time, d time.Duration) Tally {
	i := 0
	for i < len(t) && !within(t[i].At, at, d) {
		i++
	}
	if i == len(t) {
		return nil
	}
	return t[i:]
}

// at returns a copy of the tally that ends with the minute of at, to be changed by the caller.
func (t Tally) at(at time.Time, schedulable int) (Tally, *Minute) {
	t = slices.Clone(t)
	if n := len(t); n == 0 || at.Sub(t[n-1].At) >= tallyStep {
		t = append(t, Minute{At: at, Schedulable: schedulable})
	}
	m := &t[len(t)-1]
	m.Nodes, m.Chassis = slices.Clip(m.Nodes), slices.Clip(m.Chassis)
	return t, m
}

// forget takes a named node out.
func (t Tally) forget(node string) Tally {
	t = slices.Clone(t)
	for i := range t {
		if slices.Contains(t[i].Nodes, node) {
			t[i].Nodes = slices.DeleteFunc(slices.Clone(t[i].Nodes), func(n string) bool { return n == node })
		}
	}
	return t
}

// chassis lists the different ones, as many of each minute as were kept.
func (t Tally) chassis() []string {
	var out []string
	for _, m := range t {
		for _, c := range m.Chassis {
			if !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	return out
}

// A Sketch knows, but for a few, which of the nodes that are counted without a name have been counted: one bit for each,
// by a hash. It starts anew after an hour.
type Sketch struct {
	Start time.Time `json:"start"`
	Set   int       `json:"set"` // bits that are set
	Bits  []byte    `json:"bits"`
}

// A Rest is the sketches of the tallies; nil: none is needed.
type Rest struct {
	Hard *Sketch `json:"hard,omitempty"` // of nodes
	Seen *Sketch `json:"seen,omitempty"` // of reasons with nodes
}

// since is the sketch, or nil when it is to start anew at t.
func (s *Sketch) since(t time.Time) *Sketch {
	if s == nil || len(s.Bits) != sketchBits/8 || s.Set < 0 || s.Set >= sketchBits || !within(s.Start, t, hour) {
		return nil
	}
	return s
}

// add enters a key and returns for how many new ones it stands: 0 when its bit is set already, by itself or by another;
// those that a set bit hides are made up for by the weight of those that find theirs clear.
func (s *Sketch) add(key string, at time.Time) (*Sketch, float64) {
	if s = s.since(at); s == nil {
		s = &Sketch{Start: at, Bits: make([]byte, sketchBits/8)}
	}
	h := fnv.New64a()
	h.Write([]byte(key))
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd // MurmurHash3's finalizer: names differ in their last characters only
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	i := (x ^ x>>33) % sketchBits
	if s.Bits[i/8]&(1<<(i%8)) != 0 {
		return s, 0
	}
	stands := sketchBits / float64(sketchBits-s.Set)
	s = &Sketch{Start: s.Start, Set: s.Set + 1, Bits: slices.Clone(s.Bits)}
	s.Bits[i/8] |= 1 << (i % 8)
	return s, stands
}

func (m *Minute) addChassis(c string, most int) {
	if len(m.Chassis) < most && !slices.Contains(m.Chassis, c) {
		m.Chassis = append(m.Chassis, c)
	}
}
