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
	if ch.Hard {
		return b.spendHard(p, c, ch)
	}
	e := Entry{Node: ch.Node, Leaf: ch.Leaf, Reason: ch.Reason, Step: ch.Step, At: ch.At,
		Schedulable: c.Schedulable, LeafSize: c.Leaf[ch.Leaf]}
	same := func(x Entry) bool {
		return x.Node == e.Node && x.Leaf == e.Leaf && x.Reason == e.Reason && x.Step == e.Step && x.At.Equal(e.At)
	}
	if !slices.ContainsFunc(b.Spent, same) && (len(b.Spent) < spentKept || ch.Step != "refuse") {
		b.Spent = append(b.Spent, e)
	}
	return b, nil
}

// spendHard counts a hard fault's revocation. A node charged again moves to the end of the window.
func (b Books) spendHard(p policy.Guard, c Census, ch Charge) (Books, []Alert) {
	hard, m := b.Hard.forget(ch.Node).at(ch.At, c.Schedulable)
	if hard.named() < hardNames {
		m.Nodes = append(m.Nodes, ch.Node)
	} else {
		var n float64
		b.Rest.Hard, n = b.Rest.Hard.add(ch.Node, ch.At)
		m.More += n
	}
	b.Hard = hard
	count, size := hard.Count(), hard[0].Schedulable
	if count <= Limit(p.HardPageShare, 0, size) {
		return b, nil
	}
	b, first := b.Page("hard_faults", ch.At)
	if !first {
		return b, nil
	}
	return b, []Alert{{Reason: "hard_faults", Text: fmt.Sprintf("hard faults on %d of %d nodes within an hour, last %s on %s",
		count, size, ch.Reason, ch.Node)}}
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
