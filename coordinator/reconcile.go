package coordinator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A Reader reads Slurm's whole fleet.
type Reader interface {
	Nodes(ctx context.Context) ([]slurm.Node, error)
	Jobs(ctx context.Context) ([]slurm.Job, error)
	Leaves(ctx context.Context) (map[string]string, error)
}

// slurmView is what Slurm last showed, kept beside the state: it is read anew, never stored.
type slurmView struct {
	mu      sync.Mutex
	latest  map[string]slurm.View
	prev    map[string]slurm.View // what was last compared with our record
	changed map[string]time.Time  // when our last change of the node in Slurm ended
	leaves  map[string]string
	read    time.Time
	soon    chan struct{}
	first   chan struct{} // closed after the first whole read
}

func newSlurmView() *slurmView {
	return &slurmView{
		latest: map[string]slurm.View{}, prev: map[string]slurm.View{}, changed: map[string]time.Time{},
		soon: make(chan struct{}, 1), first: make(chan struct{}),
	}
}

// Times around a whole read of Slurm.
const (
	leavesEvery  = 10 * time.Minute
	refusalsKept = 24 * time.Hour

	releasesAtOnce = 20 // in one transaction, within etcd's limits
)

// reconcile reads Slurm's whole fleet once per interval, and soon after each change of ours, and turns what differs from
// our record into events.
func (l *lead) reconcile(ctx context.Context) error {
	var leavesAt time.Time
	for ctx.Err() == nil {
		begun := time.Now()
		if begun.Sub(leavesAt) > leavesEvery {
			if leaves, err := l.sl.Leaves(ctx); err == nil {
				l.slurm.mu.Lock()
				l.slurm.leaves = leaves
				l.slurm.mu.Unlock()
				leavesAt = begun
				l.replant(ctx, leaves)
			} else if ctx.Err() == nil {
				l.log.Warn("topology not read", "err", err)
			}
		}
		if err := l.readSlurm(ctx, begun, nil); err != nil && ctx.Err() == nil {
			l.log.Warn("slurm not read", "err", err)
		}
		l.mu.RLock()
		interval := max(l.st.policy.Lifecycle.SlurmInterval.D(), 100*time.Millisecond)
		l.mu.RUnlock()
		t := time.NewTimer(interval)
		select {
		case <-t.C:
		case <-l.slurm.soon:
			pause(ctx, 50*time.Millisecond)
		case <-ctx.Done():
		}
		t.Stop()
	}
	return context.Cause(ctx)
}

// replant gives nodes the leaf that Slurm's topology shows, where that has changed. A node that Slurm's topology does not
// name keeps the leaf it was enrolled with.
func (l *lead) replant(ctx context.Context, leaves map[string]string) {
	l.mu.RLock()
	var moved []string
	for _, name := range sortedKeys(l.st.nodes) {
		if leaf := leaves[name]; leaf != "" && leaf != l.st.nodes[name].Leaf {
			moved = append(moved, name)
		}
	}
	l.mu.RUnlock()
	for _, name := range moved {
		err := l.do(ctx, func(t *tx) error {
			n, ok := t.node(name)
			if !ok {
				return nil
			}
			n.Leaf = leaves[name]
			n.Version++
			t.nodes[name] = n
			t.record(wire.HistoryEntry{Node: name, Event: "leaf name=" + n.Leaf, From: string(n.State), To: string(n.State), By: "slurm"})
			return nil
		})
		if err != nil && ctx.Err() == nil {
			l.log.Warn("leaf not kept", "node", name, "err", err)
		}
	}
}

// readSlurm reads nodes and jobs and applies what is new, of all nodes or of those in only. What goes wrong with one node is
// told and hinders no other.
func (l *lead) readSlurm(ctx context.Context, begun time.Time, only map[string]bool) error {
	jobs, err := l.sl.Jobs(ctx)
	if err != nil {
		return err
	}
	nodes, err := l.sl.Nodes(ctx)
	if err != nil {
		return err
	}
	byNode := slurm.ByNode(jobs)
	for _, n := range nodes {
		if only != nil && !only[n.Name] {
			continue
		}
		if err := l.observe(ctx, slurm.View{At: begun, Node: n, Jobs: byNode[n.Name]}); err != nil {
			if !l.term.Valid() || ctx.Err() != nil {
				return err
			}
			l.log.Error("what slurm shows was not applied", "node", n.Name, "err", err)
		}
	}
	if only != nil {
		return nil
	}
	if err := l.releaseHeld(ctx, jobs); err != nil && ctx.Err() == nil {
		l.log.Error("held jobs not released", "err", err)
	}
	l.slurm.mu.Lock()
	defer l.slurm.mu.Unlock()
	l.slurm.read = time.Now()
	select {
	case <-l.slurm.first:
	default:
		close(l.slurm.first)
	}
	return nil
}

// observe compares one node as Slurm shows it with our record and applies the difference.
func (l *lead) observe(ctx context.Context, cur slurm.View) error {
	name := cur.Node.Name
	l.mu.RLock()
	n, known := l.st.nodes[name]
	busy := slices.ContainsFunc(l.st.effectsOf(name), func(e pending) bool { return slurmCarries(e.Kind) })
	l.mu.RUnlock()

	l.slurm.mu.Lock()
	if cur.At.Before(l.slurm.latest[name].At) {
		l.slurm.mu.Unlock()
		return nil // a read that began later has been heard
	}
	l.slurm.latest[name] = cur
	since := l.slurm.changed[name]
	var prev *slurm.View
	if p, ok := l.slurm.prev[name]; ok {
		prev = &p
	}
	stale := cur.At.Before(since)
	if !stale && !busy {
		l.slurm.prev[name] = cur
	}
	l.slurm.mu.Unlock()
	if !known || stale {
		return nil
	}

	evs := jobEvents(n, cur)
	if !busy { // while an order of ours is on its way, what differs may be our own doing
		evs = append(evs, drainEvents(slurm.Observe(prev, cur, recordOf(n, since)))...)
	}
	if len(evs) == 0 {
		return nil
	}
	return l.do(ctx, func(t *tx) error {
		for _, ev := range evs {
			if err := t.apply(name, ev(lifecycle.At{Time: t.now}), "slurm"); err != nil {
				return err
			}
		}
		return nil
	})
}

// recordOf is what we know of our own doing at a node.
func recordOf(n lifecycle.Node, since time.Time) slurm.Record {
	r := slurm.Record{DrainedByUs: n.DrainedByUs && !n.DrainPending, Reason: n.DrainReason, Since: since}
	for _, h := range n.Holds {
		if h.Drain {
			r.Foreign = h.Owner
		}
	}
	return r
}

type eventAt func(lifecycle.At) lifecycle.Event

// jobEvents says that the jobs on a node are others than we know of.
func jobEvents(n lifecycle.Node, v slurm.View) []eventAt {
	var now []lifecycle.JobRef
	same := len(v.Jobs) == len(n.Jobs)
	known := map[string]int{} // restarts by job
	for _, j := range n.Jobs {
		known[j.ID] = j.Restarts
	}
	for _, j := range v.Jobs {
		now = append(now, lifecycle.JobRef{ID: j.ID, Nodes: len(j.Nodes), Restarts: j.Restarts})
		restarts, here := known[j.ID]
		same = same && here && restarts == j.Restarts
	}
	if same {
		return nil
	}
	return []eventAt{func(at lifecycle.At) lifecycle.Event { return lifecycle.JobsChanged{At: at, Jobs: now} }}
}

// drainEvents turns observations into the state machine's events. The rest is for people to see in Slurm.
func drainEvents(obs []slurm.Observation) []eventAt {
	var evs []eventAt
	for _, o := range obs {
		switch o.Kind {
		case slurm.Drained:
			evs = append(evs, func(at lifecycle.At) lifecycle.Event {
				return lifecycle.SlurmDrained{At: at, User: o.User, Reason: o.Reason, BySlurm: o.BySlurm}
			})
		case slurm.Resumed:
			evs = append(evs, func(at lifecycle.At) lifecycle.Event { return lifecycle.SlurmResumed{At: at, User: o.User} })
		case slurm.ReasonChanged:
			evs = append(evs, func(at lifecycle.At) lifecycle.Event {
				return lifecycle.SlurmReason{At: at, User: o.User, Reason: o.Reason, BySlurm: o.BySlurm}
			})
		case slurm.Undrained:
			evs = append(evs, func(at lifecycle.At) lifecycle.Event { return lifecycle.SlurmUndrained{At: at, User: o.User} })
		}
	}
	return evs
}

// releaseHeld releases the jobs that only a prolog of ours has made Slurm hold, and forgets old refusals.
func (l *lead) releaseHeld(ctx context.Context, jobs []slurm.Job) error {
	l.mu.RLock()
	due := releases(jobs, l.st.refusals, l.st.policy.Hooks.ReleaseTries)
	var old []string
	for id, r := range l.st.refusals {
		if leaderNow(l.st).Sub(r.At) > refusalsKept {
			old = append(old, id)
		}
	}
	l.mu.RUnlock()
	due, old = due[:min(len(due), releasesAtOnce)], old[:min(len(old), releasesAtOnce)] // the rest at the next read
	if len(due)+len(old) == 0 {
		return nil
	}
	return l.do(ctx, func(t *tx) error {
		for _, r := range due {
			if had, ok := t.base.refusals[r.Job]; !ok || had.Restarts >= r.Restarts {
				continue // done in the meantime
			}
			r.Releases++
			t.refusals[r.Job] = &r
			_, line := t.effect(lifecycle.Effect{
				Kind: lifecycle.EffectReleaseJob, Node: r.Node, Args: map[string]string{"job": r.Job, "restarts": strconv.Itoa(r.Restarts)},
			})
			t.record(wire.HistoryEntry{Node: r.Node, Event: fmt.Sprintf("release job=%s restarts=%d", r.Job, r.Restarts), By: "assay", Detail: []string{line}})
		}
		for _, id := range old {
			t.refusals[id] = nil
		}
		return nil
	})
}

// readSoon asks for a read before the interval is over.
func (s *slurmView) readSoon() {
	select {
	case s.soon <- struct{}{}:
	default:
	}
}

// touched notes when a change of ours ended: what was read before it began to hold says nothing.
func (s *slurmView) touched(node string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed[node] = at
}

func (s *slurmView) of(node string) (slurm.View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.latest[node]
	return v, ok
}

func (s *slurmView) leaf(node string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaves[node]
}

func (s *slurmView) readAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}

// expect is our drain as it was last seen to stand: who wrote it, and when. A drain with the same text by another hand is
// not ours.
func (s *slurmView) expect(node, reason string) slurm.Expect {
	e := slurm.Expect{Reason: reason}
	if v, ok := s.of(node); ok && slurm.BareReason(v.Node.Reason) == slurm.CleanReason(reason) {
		e.User, e.Time = v.Node.ReasonUser, v.Node.ReasonTime
	}
	return e
}

// earlier is our reason of the same case as last seen to stand, which a graver one may replace; nil when another's stands.
func (s *slurmView) earlier(node, caseID string) *slurm.Expect {
	v, ok := s.of(node)
	if !ok {
		return nil
	}
	if mark, _, _ := strings.Cut(v.Node.Reason, " "); mark != lifecycle.ReasonPrefix+caseID {
		return nil
	}
	return &slurm.Expect{Reason: v.Node.Reason, User: v.Node.ReasonUser, Time: v.Node.ReasonTime}
}

func wireSlurm(v slurm.View) *wire.SlurmNode {
	w := &wire.SlurmNode{State: slurm.StateText(v.Node), Reason: v.Node.Reason, ReasonUser: v.Node.ReasonUser, ReasonTime: v.Node.ReasonTime}
	for _, j := range v.Jobs {
		w.Jobs = append(w.Jobs, j.ID)
	}
	return w
}
