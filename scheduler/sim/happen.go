package sim

import (
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/cycle"
	"github.com/assay-gpu/assay/scheduler/queue"
)

// happen carries out one event.
func (r *run) happen(e event) error {
	switch e.kind {
	case arrives:
		r.changed = true
		w := &r.work[e.who]
		j := queue.Job{ID: w.ID, User: w.User, Account: w.Account, Partition: "batch", QOS: "normal", Nodes: w.Nodes, GPUsPerNode: w.GPUs, Limit: w.limit, Requeue: true}
		return r.cycle.Queue.Submit(j, start.Unix()+r.now)
	case ends:
		if w := &r.work[e.who]; w.running() && w.runs == e.run {
			state := queue.Completed
			if w.spent+w.left > w.limit {
				state = queue.Timeout
			}
			return r.end(w, queue.Ending{State: state})
		}
	case vacates:
		if w := &r.work[e.who]; w.running() && w.runs == e.run {
			return r.end(w, queue.Ending{State: queue.Preempted})
		}
	case breaks:
		return r.breaks(int32(e.who), e.run)
	case repaired:
		if e.run == r.fault[e.who] {
			r.repaired(int32(e.who))
		}
	case screened:
		if e.run == r.fault[e.who] {
			r.enter(int32(e.who))
		}
	case corrupts:
		r.corrupts(int32(e.who))
	case found:
		if h := &r.health[e.who]; h.wrongFrom > 0 && e.run == r.fault[e.who] && !h.down {
			r.tally.caught++
			return r.leave(int32(e.who), queue.NodeFail)
		}
	case renews:
		r.renew()
	case plans, wakes:
		r.changed = true
	}
	return nil
}

func (w *work) running() bool { return w.runs > 0 && len(w.takes) > 0 }

// end ends a run: what was useful stays, what was not saved is lost.
func (r *run) end(w *work, e queue.Ending) error {
	e.At = start.Unix() + r.now
	useful := max(0, r.now-w.since-w.spent)
	saved := useful
	if e.State != queue.Completed && e.State != queue.Timeout {
		saved = 0
		if r.o.Checkpoint > 0 {
			saved = useful / r.o.Checkpoint * r.o.Checkpoint
		}
	}
	saved = min(saved, w.left)
	if w.runs >= r.o.Runs && e.State == queue.NodeFail {
		e.State = queue.Failed // nobody would try a hundredth time
		r.tally.givenUp++
	}
	w.left -= saved
	r.tally.ran(r, w, saved, e.State)
	for _, t := range w.takes {
		r.renewed(t.Node)
	}
	w.takes = nil
	r.c.fleet.End(cycle.ID(w.ID))
	r.changed = true
	result, err := r.cycle.Queue.End(w.ID, e)
	if err != nil {
		return err
	}
	if result.Held { // an operator looks, a minute later
		if err := r.cycle.Queue.Release(w.ID, true); err != nil {
			return err
		}
	}
	if !result.Requeued {
		w.ended, w.state = r.now, e.State
		r.done++
		if r.o.Progress != nil {
			r.o.Progress(r.done, len(r.work))
		}
	}
	if n, ok := r.c.fleet.View().Tree().Node(result.Suspect); ok && result.Suspect != "" && !r.health[n].down {
		return r.leave(n, queue.NodeFail)
	}
	return nil
}

// breaks is a node failing under whatever runs there. run is the number of the fault that was foreseen, or minus the start
// of a job that dies of what is still broken.
func (r *run) breaks(node int32, run int) error {
	h := &r.health[node]
	if h.down || run >= 0 && run != r.fault[node] || run < 0 && !h.broken {
		return nil
	}
	if run < 0 && !r.o.Faults.Gating {
		// Nobody looks at the node but the one whose job died. Three in a row, and the queue calls it suspect.
		return r.kill(node, queue.Ending{State: queue.NodeFail, Node: r.name(node)})
	}
	h.incidents++
	return r.leave(node, queue.NodeFail)
}

func (r *run) name(node int32) string { return r.c.fleet.View().Tree().Nodes[node] }

// kill ends all that runs on a node.
func (r *run) kill(node int32, e queue.Ending) error {
	for i := range r.work {
		w := &r.work[i]
		for _, t := range w.takes {
			if t.Node == node {
				if err := r.end(w, e); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// leave takes a node out of service and sends it to repair.
func (r *run) leave(node int32, state queue.State) error {
	h := &r.health[node]
	h.down = true
	r.fault[node]++
	r.tally.faults++
	r.c.fleet.Bar(node, scheduler.Bar{Why: "repair"})
	r.clock.add(r.now+r.o.Faults.repair(&r.chance), repaired, int64(node), r.fault[node])
	return r.kill(node, queue.Ending{State: state, Node: r.name(node)})
}

// repaired is a node coming back. With gating it is screened before it takes work, and what is still broken goes back.
func (r *run) repaired(node int32) {
	h, f := &r.health[node], &r.o.Faults
	h.broken, h.wrongFrom = r.chance.unit() < f.Unfixed, 0
	if f.SDCPerDay > 0 {
		r.clock.add(r.now+seconds(r.chance.exponential(1/f.SDCPerDay)), corrupts, int64(node), r.fault[node])
	}
	if !f.Gating {
		r.enter(node)
		return
	}
	r.clock.add(r.now+f.Screen, screened, int64(node), r.fault[node])
}

// enter puts a node into service, or with gating back to repair when its screen finds it broken.
func (r *run) enter(node int32) {
	h, f := &r.health[node], &r.o.Faults
	if f.Gating && h.broken && r.chance.unit() < f.Coverage {
		r.tally.screenedOut++
		h.down = true
		r.fault[node]++
		r.c.fleet.Bar(node, scheduler.Bar{Why: "screen failed"})
		r.clock.add(r.now+f.repair(&r.chance), repaired, int64(node), r.fault[node])
		return
	}
	h.down = false
	r.c.fleet.Unbar(node)
	life := int64(100 * 365 * 86400) // without gating a certificate is a formality
	if f.Gating {
		life = r.o.CertLife
	}
	r.serial++
	r.c.certify(node, r.serial, r.now, life)
	r.clock.add(r.now+f.nextFault(&r.chance, h), breaks, int64(node), r.fault[node])
	r.changed = true
}

// corrupts is a node beginning to compute wrongly. With gating, golden tests in idle time find those that such tests can
// find; the others, and all without gating, are found by people, much later.
func (r *run) corrupts(node int32) {
	h, f := &r.health[node], &r.o.Faults
	if h.down || h.wrongFrom > 0 {
		return
	}
	h.wrongFrom, h.catchable = max(1, r.now), r.chance.unit() < f.SDCCaught
	r.tally.corrupted++
	after := seconds(r.chance.exponential(f.SDCFound))
	if f.Gating && h.catchable {
		after = 1 + int64(r.chance.unit()*float64(f.Interval))
	}
	r.clock.add(r.now+after, found, int64(node), r.fault[node])
}

// renewed renews the certificate of a node whose job has ended, when half its life is over.
func (r *run) renewed(node int32) {
	if !r.o.Faults.Gating || r.health[node].down {
		return
	}
	if left := r.c.fleet.View().Node(node).Certificate.Expires.Unix() - start.Unix() - r.now; left < r.o.CertLife/2 {
		r.serial++
		r.c.certify(node, r.serial, r.now, r.o.CertLife)
	}
}

// renew renews the certificates of idle nodes before they lapse.
func (r *run) renew() {
	for i := range r.health {
		if n := r.c.fleet.View().Node(int32(i)); n.Free == n.Shape.All() {
			r.renewed(int32(i))
		}
	}
	r.clock.add(r.now+r.o.CertLife/4, renews, 0, 0)
}
