package backfill

import (
	"fmt"
	"time"

	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/timemap"
)

// why is what a gang waited for that gets these nodes in that slot: of all that had them before, what ends last.
func (p *pass) why(g *scheduler.Gang, takes []scheduler.Take, slot int32) Cause {
	var last timemap.Claim
	for _, take := range takes {
		if c, ok := p.times().busy.Last(take.Node, slot, take.GPUs); ok && c.To > last.To {
			last = c
		}
	}
	until := p.times().grid.At(last.To)
	running, reservations := len(p.times().running), len(p.times().reservations)
	switch i := int(last.Owner) - 1; {
	case i < 0 && g.Insists():
		return Cause{Kind: Switches, Until: p.times().grid.At(slot)}
	case i < 0 && g.Reserved != "":
		return Cause{Begins, g.Reserved, p.times().grid.At(slot)}
	case i < 0:
		return Cause{Kind: Certificate}
	case i < running:
		return Cause{RunningJob, p.times().running[i].ID, until}
	case i < running+reservations:
		return Cause{Reserved, p.times().reservations[i-running].Name, until}
	case p.started[p.order[i-running-reservations].ID]:
		return Cause{RunningJob, p.order[i-running-reservations].ID, until}
	default:
		return Cause{JobBefore, p.order[i-running-reservations].ID, until}
	}
}

// Sentence says when the job starts, and what it waits for until then.
func (p Planned) Sentence(now int64) string {
	in := func(t int64) string { return (time.Duration(t-now) * time.Second).String() }
	s := fmt.Sprintf("planned to start in %s", in(p.Start))
	switch p.Cause.Kind {
	case RunningJob:
		return fmt.Sprintf("%s; its nodes are in use by job %s, whose limit ends in %s", s, p.Cause.ID, in(p.Cause.Until))
	case JobBefore:
		return fmt.Sprintf("%s; job %s goes before it and is planned on its nodes until %s from now", s, p.Cause.ID, in(p.Cause.Until))
	case Reserved:
		return fmt.Sprintf("%s; reservation %s has its nodes until %s from now", s, p.Cause.ID, in(p.Cause.Until))
	case Switches:
		return s + "; until then it insists on fewer switches than can be had"
	case Begins:
		return s + ", when its reservation begins"
	case Certificate:
		return s + "; before that too few nodes are certified for long enough"
	}
	return s
}
