package guard

import (
	"fmt"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
)

// Spend enters a charge. It never refuses: Room was asked before, or the charge is one that is only counted. The same
// charge entered twice counts once. The alert is set once an hour when
// hard faults come to more nodes than the share that pages, and to more than one.
func (b Books) Spend(p policy.Guard, c Census, ch Charge) (Books, []Alert) {
	b = b.Prune(ch.At, p.StormWindow.D())
	e := Entry{Node: ch.Node, Leaf: ch.Leaf, Reason: ch.Reason, Step: ch.Step, At: ch.At,
		Schedulable: c.Schedulable, LeafSize: c.Leaf[ch.Leaf]}
	same := func(x Entry) bool {
		return x.Node == e.Node && x.Leaf == e.Leaf && x.Reason == e.Reason && x.Step == e.Step && x.At.Equal(e.At)
	}
	if !ch.Hard {
		if !slices.ContainsFunc(b.Spent, same) {
			b.Spent = append(b.Spent, e)
		}
		return b, nil
	}
	if !slices.ContainsFunc(b.Hard, same) {
		b.Hard = append(b.Hard, e)
	}
	nodes := nodesIn(b.Hard, ch.At, hour, all)
	size := b.Hard[0].Schedulable
	if len(nodes) <= Limit(p.HardPageShare, 0, size) {
		return b, nil
	}
	b, first := b.Page("hard_faults", ch.At)
	if !first {
		return b, nil
	}
	return b, []Alert{{Reason: "hard_faults", Text: fmt.Sprintf("hard faults on %d of %d nodes within an hour, last %s on %s",
		len(nodes), size, ch.Reason, ch.Node)}}
}

func all(Entry) bool { return true }

// nodesIn lists the nodes charged in the window of length d ending at t, each once, oldest first.
func nodesIn(es []Entry, t time.Time, d time.Duration, which func(Entry) bool) []string {
	var nodes []string
	seen := map[string]bool{} // a fleet may fail as a whole
	for _, e := range es {
		if within(e.At, t, d) && which(e) && !seen[e.Node] {
			seen[e.Node] = true
			nodes = append(nodes, e.Node)
		}
	}
	return nodes
}
