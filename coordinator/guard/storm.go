package guard

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
)

// Note enters that a node showed a reason and calls a storm when that reason has been seen, within the window, on at
// least StormNodes nodes of different chassis and on more than StormShare of the nodes that could show it. Fewer is
// hardware. The storm stands for one window from the moment it is called, or until a thaw, and alerts once.
//
// A node whose chassis is not known is a chassis of its own.
func (b Books) Note(p policy.Guard, c Census, node, chassis, reason string, at time.Time) (Books, []Alert) {
	if chassis == "" {
		chassis = node
	}
	b = b.Prune(at, p.StormWindow.D())
	b = b.sight(p, c, node, chassis, reason, at)
	if slices.ContainsFunc(b.Storms, func(s Storm) bool { return s.Reason == reason }) {
		return b, nil
	}
	exposed, ok := c.Exposed[reason]
	if !ok {
		exposed = c.Schedulable
	}
	seen := b.Seen[reason]
	count, chassises := seen.Count(), len(seen.chassis())
	if chassises < p.StormNodes || float64(count) <= p.StormShare*float64(exposed) {
		return b, nil
	}
	var nodes []string
	for _, m := range seen {
		nodes = append(nodes, m.Nodes...)
	}
	nodes = nodes[:min(len(nodes), stormNames)]
	slices.Sort(nodes)
	b.Storms = append(b.Storms, Storm{Reason: reason, At: at, Until: at.Add(p.StormWindow.D()), Nodes: nodes, Count: count})
	return b, []Alert{{Reason: "storm", Text: fmt.Sprintf("storm: %s on %d nodes of %d chassis or more within %s, of %d that could show it; nothing more is taken for it",
		reason, count, chassises, p.StormWindow.D(), exposed)}}
}

// sight enters a sighting, once for each node and reason within the window.
func (b Books) sight(p policy.Guard, c Census, node, chassis, reason string, at time.Time) Books {
	seen, known := b.Seen[reason]
	if seen.has(node) {
		return b
	}
	names, shown := 0, 0
	for _, t := range b.Seen {
		names += t.named()
		if t.has(node) {
			shown++
		}
	}
	if shown >= nodeReasons || !known && len(b.Seen) >= seenReasons && !b.makeRoom() {
		return b
	}
	seen, m := seen.at(at, c.Schedulable)
	if names < seenTotal && seen.named() < seenNames {
		m.Nodes = append(m.Nodes, node)
	} else {
		rest, n := b.Rest.Seen.add(reason+"\x00"+node, at)
		if n == 0 {
			return b // told again, as far as can be told
		}
		b.Rest.Seen, m.More = rest, m.More+n
	}
	m.addChassis(chassis, p.StormNodes)
	if b.Seen == nil {
		b.Seen = map[string]Tally{}
	}
	b.Seen[reason] = seen
	return b
}

// makeRoom forgets the reason that was seen on the fewest nodes and is no storm. It changes b, which is a copy already.
func (b Books) makeRoom() bool {
	least, found := "", false
	for _, reason := range slices.Sorted(maps.Keys(b.Seen)) {
		if slices.ContainsFunc(b.Storms, func(s Storm) bool { return s.Reason == reason }) {
			continue
		}
		if !found || b.Seen[reason].Count() < b.Seen[least].Count() {
			least, found = reason, true
		}
	}
	delete(b.Seen, least)
	return found
}

func (b Books) storm(reason string, t time.Time) (Storm, bool) {
	for _, s := range b.Storms {
		if s.Reason == reason && t.Before(s.Until) {
			return s, true
		}
	}
	return Storm{}, false
}
