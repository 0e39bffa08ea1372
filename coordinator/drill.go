package coordinator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Steps of a drill, in order. Those of drained to resumed are of a drill that drains alone.
const (
	drillOrdered  = "ordered"
	drillMade     = "made"     // the agent has judged the made-up line and put the report on its way
	drillDetected = "detected" // the report is here
	drillDecided  = "decided"  // what the state machine would do, or with a drain, does
	drillPaged    = "paged"    // the pager has taken it
	drillDrained  = "drained"
	drillResumed  = "resumed"
	drillReturned = "returned"
)

// argDrill marks the effects of a drill with its id: they end in it, not in a node's state machine.
const argDrill = "drill"

// drillsBy is who takes a node out for a drill, and brings it back.
const drillsBy = "drill"

// drainedWithin is how long a drill that drains has, where nobody says: a screen at standard may take half an hour.
const drainedWithin = time.Hour

// Drill implements api.Drills.
func (c *Coordinator) Drill(context.Context) (out wire.Drill, err error) {
	err = c.read(func(_ *lead, s *state, _ time.Time) error {
		out = s.drill
		out.Steps = slices.Clone(out.Steps)
		return nil
	})
	return out, err
}

// StartDrill implements api.Drills.
func (c *Coordinator) StartDrill(ctx context.Context, by string, ask wire.DrillAsk) (out wire.Drill, err error) {
	l, err := c.leading()
	if err != nil {
		return wire.Drill{}, err
	}
	err = l.do(ctx, func(t *tx) error {
		out, err = t.startDrill(by, ask)
		t.ref = out.ID
		return err
	})
	if ref, again := api.Repeated(ctx); again && err == nil {
		if out, err = c.Drill(ctx); err == nil && out.ID != ref {
			return wire.Drill{}, &notFoundError{"drill " + ref, "it was begun, and another one has been since: assay drill --last"}
		}
	}
	return out, err
}

// drillNow is the drill as this transaction leaves it.
func (t *tx) drillNow() wire.Drill {
	if t.drill != nil {
		return *t.drill
	}
	return t.base.drill
}

// drillOn reports whether a drill is under way.
func drillOn(d wire.Drill) bool { return d.ID != "" && d.Ended.IsZero() }

func (t *tx) startDrill(by string, ask wire.DrillAsk) (wire.Drill, error) {
	last := t.drillNow()
	if drillOn(last) {
		return wire.Drill{}, &refusedError{fmt.Sprintf("drill %s on %s is under way, until %s at the latest", last.ID, last.Node, last.Deadline.Format(time.RFC3339)), "assay drill --last shows it"}
	}
	d := wire.Drill{
		ID: "D-" + strings.TrimPrefix(t.env.newID(), "Q-"), Node: ask.Node, By: by, Reason: ask.Reason, Drains: ask.AcceptRisk == wire.RiskDrain,
		Started: t.now, LastPassed: last.LastPassed,
	}
	if d.Node == "" {
		d.Node = nextToDrill(t.base.nodes, last.Node, t.now)
	}
	if d.Node == "" {
		return wire.Drill{}, &refusedError{"drill: no node is certified and well", "assay fleet shows how they stand"}
	}
	n, known := t.node(d.Node)
	if !known {
		return wire.Drill{}, &UnknownNodeError{d.Node}
	}
	if why := notForDrill(n, d.Drains, t.now); why != "" {
		return wire.Drill{}, &refusedError{"drill on " + d.Node + ": " + why, "a drill shows the way of a fault on a node in service; assay drill without a name takes the next one that is"}
	}
	gpu, ok := gpuOf(n, ask.GPU)
	if !ok {
		return wire.Drill{}, &refusedError{fmt.Sprintf("drill on %s: it has no such GPU; it shows %d", d.Node, len(n.Inventory.GPUs)), "assay node show " + d.Node}
	}
	d.GPU = gpu.Index
	within := t.policy.Drill.Within.D()
	if d.Drains {
		within = drainedWithin
	}
	if ask.Within != 0 {
		within = ask.Within.D()
	}
	d.Deadline = t.now.Add(within)
	t.drill = &d
	t.effect(lifecycle.Effect{
		Kind: lifecycle.EffectDrill, Node: d.Node, Args: map[string]string{argDrill: d.ID, "gpu": gpu.UUID}, BootID: n.BootID, Deadline: d.Deadline,
	})
	detail := fmt.Sprintf("%s GPU %d, back by %s", d.Node, d.GPU, d.Deadline.Format(time.RFC3339))
	if d.Drains {
		detail += ", really drained"
	}
	t.drillStep(drillOrdered, drillMade, by, detail)
	return *t.drill, nil
}

// notForDrill says why a drill on the node would show nothing.
func notForDrill(n lifecycle.Node, drains bool, now time.Time) string {
	switch {
	case n.State != lifecycle.Certified || !certifiedNow(n, now):
		return "it is " + string(n.State) + " and holds no valid certificate"
	case n.Lost:
		return "it is lost"
	case len(n.Holds) > 0:
		return "the hold of " + n.Holds[0].Owner + " stands"
	case n.Case != nil:
		return "case " + n.Case.ID + " is open"
	case drains && len(n.Jobs) > 0:
		return "a job runs on it, and it is to be drained"
	}
	return ""
}

// nextToDrill is the node after the last one by name, of those that a drill can be held on: all have their turn.
func nextToDrill(nodes map[string]lifecycle.Node, last string, now time.Time) string {
	first := ""
	for _, name := range sortedKeys(nodes) {
		n := nodes[name]
		if _, ok := gpuOf(n, nil); !ok || notForDrill(n, false, now) != "" {
			continue
		}
		if name > last {
			return name
		}
		if first == "" {
			first = name
		}
	}
	return first
}

func gpuOf(n lifecycle.Node, index *int) (checks.GPU, bool) {
	for _, g := range n.Inventory.GPUs {
		if g.UUID != "" && (index == nil || g.Index == *index) {
			return g, true
		}
	}
	return checks.GPU{}, false
}

// drillStep notes that a link of the chain has done its part, and which is next.
func (t *tx) drillStep(name, next, by string, detail ...string) {
	d := t.drillNow()
	d.Steps = append(slices.Clip(slices.Clone(d.Steps)), wire.DrillStep{Name: name, At: t.now, Detail: detail})
	d.Waits = next
	t.drill = &d
	t.record(wire.HistoryEntry{Node: d.Node, Event: "drill id=" + d.ID + " step=" + name, By: by, Detail: detail})
}

func took(d wire.Drill, step string) bool {
	return slices.ContainsFunc(d.Steps, func(s wire.DrillStep) bool { return s.Name == step })
}

// drillSeen looks for the finding of the drill under way in a report, and goes on with it.
func (t *tx) drillSeen(r checks.Report) {
	d := t.drillNow()
	i := slices.IndexFunc(r.Findings, func(f checks.Finding) bool { return f.Drill != "" && f.Drill == d.ID })
	if i < 0 || !drillOn(d) || r.Node != d.Node || took(d, drillDetected) {
		return
	}
	f := r.Findings[i]
	t.drillStep(drillDetected, drillDecided, "agent", f.Reason, f.Evidence)
	to, would, err := t.rehearse(d.Node, f)
	switch {
	case err != nil:
		t.drillOver("it could not be decided: " + err.Error())
		return
	case len(would) == 0:
		t.drillOver("the state machine would do nothing about it")
		return
	}
	t.drillStep(drillDecided, drillPaged, "assay", would...)
	if d.Drains {
		order := lifecycle.OrderDrain{At: lifecycle.At{Time: t.now}, By: drillsBy, Reason: "drill " + d.ID + " of " + d.By}
		if err := t.apply(d.Node, order, drillsBy); err != nil {
			t.drillOver("it was not drained: " + err.Error())
			return
		}
	}
	t.effect(lifecycle.Effect{Kind: lifecycle.EffectPage, Node: d.Node, Deadline: d.Deadline, Args: map[string]string{
		argDrill: d.ID, "reason": "drill", "text": fmt.Sprintf("DRILL, do nothing: %s: %s; it would go from %s to %s", d.Node, f.Reason, lifecycle.Certified, to),
	}})
}

// rehearse has the state machine decide on a drill's finding as if it were real, and says what that would write and do.
// Nothing of it is kept.
func (t *tx) rehearse(node string, f checks.Finding) (to string, would []string, err error) {
	f.Drill = ""
	trial := t.clone()
	trial.history = nil
	if err := trial.apply(node, lifecycle.HardFault{At: lifecycle.At{Time: t.now}, Finding: f}, drillsBy); err != nil {
		return "", nil, err
	}
	for _, h := range trial.history {
		if h.To != "" {
			to = h.To
		}
		for _, line := range h.Detail {
			would = append(would, "would: "+line)
		}
	}
	if to != "" && len(would) > 0 {
		would = append([]string{"would: " + string(lifecycle.Certified) + " -> " + to}, would...)
	}
	return to, would, nil
}

// drillEnded takes in how an effect of a drill ended.
func (t *tx) drillEnded(e pending, outcome, detail string) error {
	d := t.drillNow()
	if d.ID != e.Args[argDrill] || !drillOn(d) {
		return nil
	}
	if outcome != "done" {
		t.drillOver(e.Kind + " " + outcome + ": " + detail)
		return nil
	}
	switch e.Kind {
	case lifecycle.EffectDrill:
		next := d.Waits
		if next == drillMade {
			next = drillDetected
		}
		t.drillStep(drillMade, next, "agent", detail)
	case lifecycle.EffectPage:
		next := drillReturned
		if d.Drains {
			next = drillDrained
		}
		t.drillStep(drillPaged, next, "assay", e.Args["text"])
	}
	return nil
}

// drillOver ends the drill under way: passed when there is no why. What it began is undone.
func (t *tx) drillOver(why string) {
	d := t.drillNow()
	d.Ended, d.Outcome, d.Why, d.Waits = t.now, wire.DrillPassed, why, ""
	if why == "" {
		d.LastPassed = t.now
	} else {
		d.Outcome = wire.DrillFailed
	}
	t.drill = &d
	for id, e := range t.base.effects {
		if e.Args[argDrill] == d.ID {
			t.tick(id)
		}
	}
	for id, e := range t.effects {
		if e != nil && e.Args[argDrill] == d.ID {
			t.tick(id)
		}
	}
	t.record(wire.HistoryEntry{Node: d.Node, Event: "drill id=" + d.ID + " outcome=" + d.Outcome, By: "assay", Detail: lines(why)})
	if why == "" {
		return
	}
	where := ""
	if d.Node != "" {
		where = " on " + d.Node
	}
	t.page(d.Node, "drill_failed", "drill "+d.ID+where+" did not come back: "+why)
	if n, ok := t.node(d.Node); ok && d.Drains && drillsCase(n) {
		// An order that makes no sense any more is no further fault: the page says that the drill failed.
		_ = t.bringBack(n)
	}
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// drillsCase reports whether the node is out for a drill alone.
func drillsCase(n lifecycle.Node) bool {
	return n.Case != nil && n.Case.Cause == lifecycle.CauseOrder && len(n.Reasons) == 1 && strings.HasPrefix(n.Reasons[0], "drained by "+drillsBy+": ")
}

// bringBack orders a node that is out for a drill back: through a screen, as every node comes back.
func (t *tx) bringBack(n lifecycle.Node) error {
	at := lifecycle.At{Time: t.now}
	if n.State == lifecycle.Draining {
		return t.apply(n.Name, lifecycle.OrderCancel{At: at, By: drillsBy, Reason: "the drill is over"}, drillsBy)
	}
	return t.apply(n.Name, lifecycle.OrderResume{At: at, By: drillsBy, Reason: "the drill is over"}, drillsBy)
}
