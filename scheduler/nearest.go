package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// nearest is the nearest thing to g that fits now, in words: each is tried before it is told. First one wish less, then a
// shorter time, then a lower level, then fewer nodes; empty when not even one node fits.
func (s *Snapshot) nearest(g Gang) string {
	try := func(change func(*Gang)) bool {
		h := g
		change(&h)
		_, ok := Find(s, h)
		return ok
	}
	var drop []string
	for _, w := range []struct {
		text string
		has  bool
		drop func(*Gang)
	}{
		{"under any switch", g.Near == Required, func(g *Gang) { g.Near = Closest }},
		{"under more leaves", g.insists(), func(g *Gang) { g.Switches = 0 }},
		{"without segments", g.Segment > 0, func(g *Gang) { g.Segment = 0 }},
		{"without NVLink groups", g.Group > 1, func(g *Gang) { g.Group = 0 }},
		{"with more under a leaf", g.PerLeaf > 0, func(g *Gang) { g.PerLeaf = 0 }},
		{"of different grades", g.SameGrade, func(g *Gang) { g.SameGrade = false }},
		{"certified longer ago", g.MaxAge > 0, func(g *Gang) { g.MaxAge = 0 }},
		{"without through", g.Through, func(g *Gang) { g.Through = false }},
	} {
		if w.has && try(w.drop) {
			drop = append(drop, w.text)
		}
	}
	if len(drop) > 0 {
		return "it would fit " + strings.Join(drop, ", or ")
	}
	if left := s.longest(g); left > 0 {
		return "it would fit with a limit of " + span2(left)
	}
	for l := g.level() - 1; l >= checks.Quick; l-- {
		if try(func(g *Gang) { g.Level = l }) {
			return "it would fit certified " + l.String()
		}
	}
	// Fewer nodes: the most that fit, in whole slices. More never fit where fewer do not.
	step := max(g.Segment, g.Group, 1)
	lo, hi := 0, (g.Nodes-1)/step
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if try(func(g *Gang) { g.Nodes = mid * step }) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if lo > 0 {
		return fmt.Sprintf("%s would fit", count(lo*step, "node"))
	}
	return ""
}

// longest is the longest limit under an hour with which g would fit, in whole minutes; 0 for none.
func (s *Snapshot) longest(g Gang) time.Duration {
	short := g.remaining()
	fits := func(d time.Duration) bool {
		h := g
		h.Limit, h.MinRemaining, h.Through = d, 0, false
		_, ok := Find(s, h)
		return ok
	}
	minutes := []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute, 45 * time.Minute}
	if short <= time.Minute || !fits(time.Minute) {
		return 0
	}
	for _, d := range slices.Backward(minutes) {
		if d < short && fits(d) {
			return d
		}
	}
	return 0
}
