package coordinator

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Report implements api.Agents: it returns once what the report brings is durable.
func (c *Coordinator) Report(ctx context.Context, r checks.Report) (wire.ReportAnswer, error) {
	l, err := c.leading()
	if err != nil {
		return wire.ReportAnswer{}, err
	}
	return l.report(ctx, r, false)
}

func (l *lead) report(ctx context.Context, r checks.Report, ownGPU bool) (wire.ReportAnswer, error) {
	answer := wire.ReportAnswer{ID: r.ID}
	l.shows.put(r.Node, r.Inventory)
	r.Inventory.Shows = nil // it is no part of the hardware that a node's state goes by
	if l.heard(r) {
		answer.Duplicate, answer.State = true, l.stateOf(r.Node)
		return answer, nil
	}
	if !l.brings(r, ownGPU) {
		l.seen.add(r.Node, r.ID)
		answer.State = l.stateOf(r.Node)
		return answer, nil
	}
	err := l.do(ctx, func(t *tx) error {
		if t.heard(r) {
			return nil
		}
		before := len(t.history)
		t.drillSeen(r)
		evs, more := bounded(reduce(r, ownGPU || r.OwnGPU, t.policyFor(r), t.now))
		for _, ev := range evs {
			if err := t.apply(r.Node, ev, "agent"); err != nil {
				return err
			}
		}
		if len(t.history) > before {
			t.hear(r)
			if more > 0 {
				t.record(wire.HistoryEntry{Node: r.Node, Event: fmt.Sprintf("more_faults count=%d", more), By: "agent"})
			}
		}
		t.turnedAway(r)
		if r.Screen != "" {
			t.endScreen(r)
		}
		return nil
	})
	if err != nil {
		return wire.ReportAnswer{}, err
	}
	l.seen.add(r.Node, r.ID)
	answer.State = l.stateOf(r.Node)
	return answer, nil
}

// heard reports whether the report has been taken in already, by this leader or an earlier one.
func (l *lead) heard(r checks.Report) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.seen.has(r.Node, r.ID) || slices.Contains(l.st.reported[r.Node], r.ID)
}

func (t *tx) heard(r checks.Report) bool { return slices.Contains(t.reports(r.Node), r.ID) }

// hear notes, in the transaction with what the report has changed, that it was taken in. Its sender may never get the
// answer and send it again, to the next leader and when its fault has long been mended.
func (t *tx) hear(r checks.Report) {
	if r.ID == "" {
		return
	}
	ids := append(slices.Clone(t.reports(r.Node)), r.ID)
	t.reported[r.Node] = ids[max(0, len(ids)-reportsStored):]
}

func (t *tx) reports(node string) []string {
	if ids, ok := t.reported[node]; ok {
		return ids
	}
	return t.base.reported[node]
}

// turnedAway notes the job that a hard fault turned away in its prolog: with a permit, or by itself when no answer came.
// The report tells of it in either case.
func (t *tx) turnedAway(r checks.Report) {
	if r.Why != checks.WhyProlog || r.Job == nil || !slices.ContainsFunc(r.Findings, checks.Finding.HardFault) {
		return
	}
	if n, _ := t.node(r.Node); n.Name != "" {
		if granted, _ := permits(n, t.now, t.env.slurm); granted {
			t.refuse(r.Node, *r.Job)
		}
	}
}

// refuse notes that a prolog of ours turned the job away, so that it is released from the hold that follows.
func (t *tx) refuse(node string, j checks.Job) {
	had, known := t.base.refusals[j.ID]
	if j.ID == "" || known && had.Restarts >= j.Restarts {
		return // told again
	}
	t.refusals[j.ID] = &refusal{Job: j.ID, Node: node, Restarts: j.Restarts, Releases: had.Releases, At: t.now}
}

// brings reports whether the report could change anything, so that the many that say "all is well" never wait for
// etcd. It tries the events on a transaction that it throws away.
func (l *lead) brings(r checks.Report, ownGPU bool) bool {
	if r.Screen != "" || r.Verdict == checks.Fail {
		return true
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	t := l.st.begin(env{term: l.term.Number(), slurm: l.cfg.Slurm != nil, sign: unsigned, newID: func() string { return "Q-0000" }}, leaderNow(l.st))
	for _, ev := range reduce(r, ownGPU, t.policyFor(r), t.now) {
		if err := t.apply(r.Node, ev, "agent"); err != nil {
			return true // the loop says what is wrong with it
		}
	}
	return !t.empty()
}

// endScreen ticks off the effect that asked for the screen: the report is its result.
func (t *tx) endScreen(r checks.Report) {
	if e, ok := t.base.effects[r.Screen]; ok && e.Node == r.Node && e.Kind == lifecycle.EffectScreen {
		t.tick(r.Screen)
	}
}

func (l *lead) stateOf(node string) string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return string(l.st.nodes[node].State)
}

// EffectResult implements api.Agents: an effect that the agent carried out, or could not.
func (c *Coordinator) EffectResult(ctx context.Context, r wire.EffectResult) error {
	l, err := c.leading()
	if err != nil {
		return err
	}
	return l.do(ctx, func(t *tx) error {
		e, ok := t.base.effects[r.ID]
		if !ok || e.Node != r.Node {
			return nil // ticked off before: the answer was lost on its way
		}
		return t.endEffect(e, r.Outcome, r.Detail, r.Refs)
	})
}

// endEffect ticks an effect off and tells the node's state machine how it went.
func (t *tx) endEffect(e pending, outcome, detail string, refs map[string]string) error {
	t.tick(e.ID)
	if e.Args[argDrill] != "" {
		return t.drillEnded(e, outcome, detail)
	}
	n, known := t.node(e.Node)
	if !known {
		return nil
	}
	if e.Kind == lifecycle.EffectEvidence && len(refs) > 0 && n.Case != nil && n.Case.ID == e.Args["case"] {
		c := t.caseOf(n.Case.ID)
		c.Evidence = refs
		t.cases[n.Case.ID] = c
	}
	return t.apply(e.Node, lifecycle.EffectEnded{At: lifecycle.At{Time: t.now}, ID: e.ID, Kind: e.Kind, Outcome: outcome, Detail: detail}, "assay")
}

// reportsStored is how many report ids are stored for a node: more than can be on their way without an answer.
const reportsStored = 16

// reportIDs remembers the last reports of each node, so that one delivered twice counts once.
type reportIDs struct {
	mu  sync.Mutex
	ids map[string][]string
}

// reportIDsKept is how many ids are remembered for a node: more than its spool sends in one go.
const reportIDsKept = 64

func (r *reportIDs) has(node, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, have := range r.ids[node] {
		if have == id {
			return true
		}
	}
	return false
}

func (r *reportIDs) add(node, id string) {
	if id == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = map[string][]string{}
	}
	ids := append(r.ids[node], id)
	if len(ids) > reportIDsKept {
		ids = append([]string(nil), ids[len(ids)-reportIDsKept:]...)
	}
	r.ids[node] = ids
}
