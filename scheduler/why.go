package scheduler

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// Why says in a sentence why g has no place in s, with numbers and the nodes to look at: what it needs, how many nodes
// have it, what keeps out those that come nearest, and what would fit instead. It tries several placements: it is for
// whoever asks, not for every pass.
func (s *Snapshot) Why(g Gang, r *Refusal) string {
	if r.Invalid != "" {
		return r.Invalid
	}
	a, err := newAsk(s, &g)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	b.WriteString("needs " + a.needs())
	if len(r.Lost) > 0 {
		names := make([]string, len(r.Lost))
		for i, n := range r.Lost {
			names[i] = s.lay.tree.Nodes[n]
		}
		fmt.Fprintf(&b, "; lost %s", hostlist.Compress(names))
	}
	switch {
	case r.Fit > 0 && len(r.Lost) > 0:
		fmt.Fprintf(&b, "; %s could stand in, but not where the gang needs %s", count(r.Fit, "node"), itThem(len(r.Lost)))
	case r.Fit == 0:
		b.WriteString("; none is")
	case r.Fit < r.Need:
		fmt.Fprintf(&b, "; %d %s", r.Fit, areIs(r.Fit))
	default:
		fmt.Fprintf(&b, "; %d are, but %s", r.Fit, a.apart())
	}
	for _, part := range a.kept(r) {
		b.WriteString("; " + part)
	}
	if near := s.nearest(g); near != "" && len(r.Lost) == 0 {
		b.WriteString("; " + near)
	}
	return b.String()
}

func itThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

func areIs(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// needs is the gang's wish in words: "64 nodes of 8 GPUs certified soak within 7 d for 1 h more, under one leaf".
func (a *ask) needs() string {
	g := a.g
	s := count(g.Nodes, "node")
	switch {
	case g.Share.Kind != NoShare:
		s += " with a part of a GPU (" + g.Share.text() + ")"
	case a.whole && g.GPUs == 0:
		s += ", whole"
	case a.whole:
		s += fmt.Sprintf(" with %s, whole", count(g.GPUs, "GPU"))
	default:
		s += " with " + count(g.GPUs, "GPU") + " free"
	}
	s += ", certified " + a.level.String()
	if g.MaxAge > 0 {
		s += " within " + span2(g.MaxAge)
	}
	s += " for " + span2(g.remaining()) + " more"
	if g.Near == Required {
		s += ", under one " + heightName(g.Height)
	}
	if g.insists() {
		s += ", under " + count(g.Switches, "leaf")
	}
	if g.Segment > 0 {
		s += fmt.Sprintf(", in segments of %d under one %s", g.Segment, heightName(g.SegmentHeight))
	}
	if g.Group > 1 {
		s += fmt.Sprintf(", in groups of %d in one NVLink domain", g.Group)
	}
	if g.PerLeaf > 0 {
		s += fmt.Sprintf(", at most %d under a leaf", g.PerLeaf)
	}
	if g.SameGrade {
		s += ", of one grade"
	}
	return s
}

// apart says how many would fit together at most.
func (a *ask) apart() string {
	if a.g.SameGrade {
		return fmt.Sprintf("at most %d of one grade", a.ofOneGrade())
	}
	most, at := 0, topo.None
	t := a.s.lay.tree
	for sw := range t.Switches {
		// The highest switches that may join it: lower ones hold no more.
		s := &t.Switches[sw]
		if s.Height > a.top || s.Parent != topo.None && t.Switches[s.Parent].Height <= a.top {
			continue
		}
		if n := a.together(s.LeafLo, s.LeafHi); n > most {
			most, at = n, int32(sw)
		}
	}
	if at == topo.None {
		return "not together"
	}
	name := t.Switches[at].Name
	if name == "" {
		name = "one " + heightName(t.Switches[at].Height)
	}
	return fmt.Sprintf("at most %d together, under %s", most, name)
}

// together is how many nodes of leaves lo ≤ l < hi the gang could have at most, in whole lumps, and in as many leaves as
// --switches allows.
func (a *ask) together(lo, hi int32) int {
	var k kinds
	k.addAll(a, lo, hi)
	bins := 0
	for _, p := range k.list {
		bins += p.n
	}
	if a.g.insists() {
		bins = min(bins, a.g.Switches)
	}
	n := 0
	for _, p := range k.largest(bins) {
		n += p.cap * p.n * a.lump
	}
	return n
}

func (a *ask) ofOneGrade() int {
	most := 0
	for _, set := range a.s.grades {
		if set == nil {
			continue
		}
		b := *a
		b.with = append(b.with[:len(b.with):len(b.with)], set)
		n := 0
		for ci := range int32(a.s.lay.cells()) {
			n += bits.OnesCount64(b.passes(ci))
		}
		most = max(most, n)
	}
	return most
}

// nearFirst is the order in which reasons are told: what may soon be otherwise comes first.
var nearFirst = []struct {
	r    Reason
	text string
}{
	{Lapsing, "lapse too soon"}, {Old, "were certified too long ago"}, {Shallow, "are certified at a lower level"}, {Uncertified, "have no certificate"},
	{Uncovered, "have GPUs that no certificate covers"}, {Unlinked, "have GPUs free that NVLink does not join"}, {Taken, "are busy"},
	{Kept, "are reserved for others"}, {Barred, "take no work"}, {Small, "have too few GPUs of that kind"}, {Unseen, "have never reported"}, {Outside, "are not for it"},
}

// kept tells each reason with its number and nodes; of nodes that take no work why, since when and by whom.
func (a *ask) kept(r *Refusal) []string {
	nodes := map[Reason][]string{}
	bars := map[Bar][]string{}
	for ci := range int32(a.s.lay.cells()) {
		c := a.s.cell(ci)
		a.reasons(ci, func(reason Reason, w uint64) {
			if reason == Apart || r.Counts[reason] > maxNamed && reason != Barred {
				return
			}
			for ; w != 0; w &= w - 1 {
				i := bits.TrailingZeros64(w)
				name := a.s.lay.tree.Nodes[int(c.base)+i]
				if reason == Barred {
					bars[*c.nodes[i].bar] = append(bars[*c.nodes[i].bar], name)
				} else {
					nodes[reason] = append(nodes[reason], name)
				}
			}
		})
	}
	var out []string
	for _, x := range nearFirst {
		n := r.Counts[x.r]
		switch {
		case n == 0:
		case x.r == Barred:
			out = append(out, barred(bars)...)
		default:
			text := fmt.Sprintf("%d %s", n, singular(n, x.text))
			if list := nodes[x.r]; list != nil {
				text += ": " + hostlist.Compress(list)
			}
			out = append(out, text)
		}
	}
	return out
}

// maxNamed is how many nodes of one reason are named; of more only the number is told.
const maxNamed = 32

func barred(bars map[Bar][]string) []string {
	keys := slices.SortedFunc(maps.Keys(bars), func(x, y Bar) int {
		if d := len(bars[y]) - len(bars[x]); d != 0 {
			return d
		}
		return strings.Compare(x.text(), y.text())
	})
	var out []string
	more := 0
	for i, b := range keys {
		if i == 4 {
			for _, k := range keys[i:] {
				more += len(bars[k])
			}
			break
		}
		text := fmt.Sprintf("%d %s", len(bars[b]), b.text())
		if len(bars[b]) <= maxNamed {
			text += ": " + hostlist.Compress(bars[b])
		}
		out = append(out, text)
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("%d more take no work", more))
	}
	return out
}

func (b Bar) text() string {
	s := b.Why
	if !b.Since.IsZero() {
		s += " since " + b.Since.UTC().Format(time.RFC3339)
	}
	if b.By != "" {
		s += " by " + b.By
	}
	return s
}

// singular turns "lapse too soon" into "lapses too soon" for one node.
func singular(n int, text string) string {
	if n != 1 {
		return text
	}
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "are":
		verb = "is"
	case "were":
		verb = "was"
	case "have":
		verb = "has"
	default:
		verb += "s"
	}
	return verb + " " + rest
}

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case what == "leaf":
		return fmt.Sprintf("%d leaves", n)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func heightName(h int) string {
	if h == 0 {
		return "leaf"
	}
	return fmt.Sprintf("switch of height %d", h)
}

// span2 is a duration as people write it: 7 d, 1 h, 90 min, 45 s.
func span2(d time.Duration) string {
	switch {
	case d >= 48*time.Hour && d%(24*time.Hour) == 0:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", Seconds(d))
}

func (s Share) text() string {
	t := "MIG " + s.Profile
	switch s.Kind {
	case MPS:
		t = fmt.Sprintf("MPS %d %%", s.Amount)
	case Shard:
		t = count(s.Amount, "shard")
	}
	if s.Memory > 0 {
		t += fmt.Sprintf(", %d GiB", s.Memory)
	}
	return t
}
