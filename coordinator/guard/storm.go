package guard

import (
	"fmt"
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
	i := slices.IndexFunc(b.Seen, func(s Sighting) bool { return s.Node == node && s.Reason == reason })
	if i < 0 {
		b.Seen = append(b.Seen, Sighting{node, chassis, reason, at})
	}
	if slices.ContainsFunc(b.Storms, func(s Storm) bool { return s.Reason == reason }) {
		return b, nil
	}
	var nodes []string
	chassises := map[string]bool{}
	for _, s := range b.Seen {
		if s.Reason != reason {
			continue
		}
		nodes = append(nodes, s.Node)
		chassises[s.Chassis] = true
	}
	exposed, ok := c.Exposed[reason]
	if !ok {
		exposed = c.Schedulable
	}
	if len(chassises) < p.StormNodes || float64(len(nodes)) <= p.StormShare*float64(exposed) {
		return b, nil
	}
	slices.Sort(nodes)
	b.Storms = append(b.Storms, Storm{Reason: reason, At: at, Until: at.Add(p.StormWindow.D()), Nodes: nodes})
	return b, []Alert{{Reason: "storm", Text: fmt.Sprintf("storm: %s on %d nodes of %d chassis within %s, of %d that could show it; nothing more is taken for it",
		reason, len(nodes), len(chassises), p.StormWindow.D(), exposed)}}
}

func (b Books) storm(reason string, t time.Time) (Storm, bool) {
	for _, s := range b.Storms {
		if s.Reason == reason && t.Before(s.Until) {
			return s, true
		}
	}
	return Storm{}, false
}
