package coordinator

import (
	"fmt"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// drillWork is what time has brought for the drill under way, or for the next one. The caller holds l.mu.
func (l *lead) drillWork(now time.Time) []func(*tx) error {
	d := l.st.drill
	if !drillOn(d) {
		every := l.st.policy.Drill.Every.D()
		if every == 0 || now.Sub(d.Started) < every {
			return nil
		}
		return []func(*tx) error{func(t *tx) error { t.drillInTurn(every); return nil }}
	}
	n := l.st.nodes[d.Node]
	beat, heard := l.beats.of(d.Node)
	told := heard && n.Certificate != nil && beat.serial == n.Certificate.Serial
	if !drillMoves(d, n, beat.at, told, now) {
		return nil
	}
	return []func(*tx) error{func(t *tx) error { return t.drillGoesOn(d.ID, beat.at, told) }}
}

// drillInTurn begins the drill that policy asks for, or notes that it could not.
func (t *tx) drillInTurn(every time.Duration) {
	last := t.drillNow()
	if drillOn(last) || t.now.Sub(last.Started) < every {
		return
	}
	_, err := t.startDrill("assay", wire.DrillAsk{Reason: fmt.Sprintf("every %s, as policy says", t.policy.Drill.Every)})
	if err == nil {
		return
	}
	t.drill = &wire.Drill{ID: "D-" + t.env.newID()[2:], By: "assay", Started: t.now, Deadline: t.now, Node: last.Node, LastPassed: last.LastPassed}
	t.drillOver(err.Error())
}

// drillMoves reports whether drillGoesOn would do anything. It is pure.
func drillMoves(d wire.Drill, n lifecycle.Node, beat time.Time, told bool, now time.Time) bool {
	if !now.Before(d.Deadline) {
		return true
	}
	switch {
	case !took(d, drillPaged) || !took(d, drillMade):
		return false
	case !d.Drains:
		return n.State != lifecycle.Certified || told && beat.After(lastStep(d))
	case !took(d, drillResumed):
		return n.State == lifecycle.Quarantined
	}
	return n.State == lifecycle.Certified && n.Case == nil && !n.DrainedByUs && told && beat.After(lastStep(d))
}

// drillGoesOn does what is due: the return, the way back of a node that was drained, or the end of a drill that is late.
// Beat is when the agent was heard last, told whether it said then that it holds the node's certificate.
func (t *tx) drillGoesOn(id string, beat time.Time, told bool) error {
	d := t.drillNow()
	if d.ID != id || !drillOn(d) {
		return nil
	}
	n, _ := t.node(d.Node)
	if !drillMoves(d, n, beat, told, t.now) {
		return nil
	}
	switch {
	case !t.now.Before(d.Deadline):
		t.drillOver(fmt.Sprintf("it was not back within %s; the step %q did not come", d.Deadline.Sub(d.Started), d.Waits))
	case !d.Drains && n.State != lifecycle.Certified:
		t.drillOver("the node became " + string(n.State) + " for a reason of its own")
	case d.Drains && !took(d, drillResumed):
		t.drillStep(drillDrained, drillResumed, "assay", strings.Join(n.Reasons, "; "))
		if err := t.bringBack(n); err != nil {
			return err
		}
		t.drillStep(drillResumed, drillReturned, "assay", "screened first, as every node")
	default:
		t.drillStep(drillReturned, "", "agent", fmt.Sprintf("certificate %d holds on %s", n.Certificate.Serial, n.Name))
		t.drillOver("")
	}
	return nil
}

func lastStep(d wire.Drill) time.Time { return d.Steps[len(d.Steps)-1].At }
