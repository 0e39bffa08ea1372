package coordinator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/guard"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// A tx gathers the changes of one or more events over a state it does not touch. Its ops go to etcd in one
// transaction; when that holds, publish makes them the state. It does no I/O.
type tx struct {
	base *state
	env  env
	now  time.Time

	nodes    map[string]lifecycle.Node
	woken    map[string]bool // agents that must hear of it
	cases    map[string]wire.Case
	effects  map[string]*pending // nil: ticked off
	refusals map[string]*refusal
	jobChanges
	reported  map[string][]string
	tokens    map[string]*authority.TokenRecord // nil: spent or expired
	tickets   map[string]rma.Ticket
	parts     map[string]rma.Part
	guard     guard.Books
	policy    policy.Policy
	rollout   *rollout
	learned   map[string]policy.Set
	counters  counters
	history   []wire.HistoryEntry
	extra     []store.Op
	forgotten []string // closed cases no longer kept
	book      rules.Book
	usage     *usage           // nil: as it was
	drill     *wire.Drill      // nil: as it was; replaced, never changed
	onces     map[string]*once // changed; nil: dropped
	ref       string           // what the answer of the write is found by
	guarded   bool             // guard changed
	governed  bool             // policy or rollout changed
	ruled     bool             // book changed
}

// env is what a transaction needs from outside the state: who leads, and the secrets and chances it may use.
type env struct {
	term  int64
	slurm bool
	sign  func(certificate.Certificate) certificate.Certificate // with key id and signature
	newID func() string                                         // a case id not used before

	timeline func(id string) []wire.HistoryEntry // what history keeps of a case; nil: nothing
}

func (s *state) begin(e env, now time.Time) *tx {
	return &tx{
		base: s, env: e, now: now,
		nodes: map[string]lifecycle.Node{}, woken: map[string]bool{}, cases: map[string]wire.Case{},
		effects: map[string]*pending{}, refusals: map[string]*refusal{}, reported: map[string][]string{}, tokens: map[string]*authority.TokenRecord{},
		jobChanges: newJobChanges(), tickets: map[string]rma.Ticket{}, parts: map[string]rma.Part{}, onces: map[string]*once{},
		guard: s.guard, policy: s.policy, rollout: s.rollout, learned: s.learned, counters: s.counters, book: s.book,
	}
}

// node returns the node as this transaction leaves it.
func (t *tx) node(name string) (lifecycle.Node, bool) {
	if n, ok := t.nodes[name]; ok {
		return n, true
	}
	n, ok := t.base.nodes[name]
	return n, ok
}

func (t *tx) caseOf(id string) wire.Case {
	if c, ok := t.cases[id]; ok {
		return c
	}
	return t.base.cases[id]
}

func (t *tx) empty() bool {
	return len(t.nodes)+len(t.cases)+len(t.effects)+len(t.refusals)+len(t.history)+len(t.extra)+t.jobSize() == 0 && !t.guarded && !t.governed && t.drill == nil && len(t.onces) == 0 &&
		maps.Equal(t.learned, t.base.learned)
}

// apply steps one node by one event and gathers what follows. An event that changes nothing leaves no trace.
func (t *tx) apply(name string, ev lifecycle.Event, by string) error {
	before, ok := t.node(name)
	if !ok {
		if _, enrols := ev.(lifecycle.Enrol); !enrols {
			return &UnknownNodeError{name}
		}
		before = lifecycle.Node{Name: name}
	}
	census := t.base.census()
	t.note(before, ev, census)
	after, writes, effects, err := lifecycle.Step(before, ev, lifecycle.Inputs{
		Policy: t.policyOf(before), Guard: guard.New(t.policy.Guard, census, t.guard), CaseID: t.env.newID(), Slurm: t.env.slurm,
	})
	if err != nil {
		return err
	}
	if len(writes) == 0 && len(effects) == 0 && after.Version == before.Version {
		return nil
	}
	var detail []string
	for _, w := range writes {
		line, err := t.write(&after, w)
		if err != nil {
			return err
		}
		detail = append(detail, line)
	}
	for _, e := range effects {
		if e.Kind == lifecycle.EffectPage && !t.firstPage(e.Args["key"]) {
			continue
		}
		id, line := t.effect(e)
		after = lifecycle.Recorded(after, e, id)
		detail = append(detail, line)
	}
	t.nodes[name] = after
	t.woken[name] = true
	t.mirrorCase(after)
	t.jobsAfter(before, after)
	t.hardware(before, after)
	t.ticketFollows(before, after, ev, by)
	caseID := ""
	if c := after.Case; c != nil {
		caseID = c.ID
	} else if before.Case != nil {
		caseID = before.Case.ID
	}
	t.record(wire.HistoryEntry{
		Node: name, Event: ev.String(), From: string(before.State), To: string(after.State), Case: caseID, By: by, Detail: detail,
	})
	if before.Case != nil && (after.Case == nil || after.Case.ID != before.Case.ID) {
		t.keepTimeline(before.Case.ID)
	}
	return nil
}

// note tells the guard of a fault that counts, acted on or not: a storm is counted in faults, not in drains.
func (t *tx) note(n lifecycle.Node, ev lifecycle.Event, c guard.Census) {
	reason, counts := lifecycle.Counted(n, ev, t.policyOf(n))
	if !counts {
		return
	}
	chassis := n.Inventory.NodeSerial
	if chassis == "" {
		chassis = n.Name
	}
	books, alerts := t.guard.Note(t.policy.Guard, c, n.Name, chassis, reason, t.now)
	if !reflect.DeepEqual(books, t.guard) { // a fault told a thousand times is noted once
		t.guard, t.guarded = books, true
	}
	t.alert(n.Name, alerts)
}

// write gathers one write of a step and says it in words for the history.
func (t *tx) write(n *lifecycle.Node, w lifecycle.Write) (string, error) {
	switch w := w.(type) {
	case lifecycle.IssueCertificate:
		t.counters.Serial++
		c := w.Certificate
		c.Serial = t.counters.Serial
		c = t.env.sign(c)
		*n = lifecycle.Granted(*n, c)
		t.put(keyCerts+c.Node, c)
		return fmt.Sprintf("certificate %d %s until %s", c.Serial, c.Level, c.Expires.Format(time.RFC3339)), nil
	case lifecycle.DeleteCertificate:
		t.extra = append(t.extra, store.Op{Key: keyCerts + w.Node, Delete: true})
		return fmt.Sprintf("revoke %d: %s", w.Serial, w.Reason), nil
	case lifecycle.OpenCase:
		c := wire.Case{ID: w.Case.ID, Node: n.Name, Opened: w.Case.Opened, Cause: w.Case.Cause, Part: w.Case.Part, Findings: appendFindings(nil, w.Findings)}
		t.cases[c.ID] = c
		return "open case " + c.ID, nil
	case lifecycle.UpdateCase:
		c := t.caseOf(w.Case.ID)
		c.Findings = appendFindings(c.Findings, w.Findings)
		t.cases[w.Case.ID] = c
		return "update case " + w.Case.ID, nil
	case lifecycle.CloseCase:
		c := t.caseOf(w.ID)
		c.Closed, c.Outcome, c.Next, c.Deadline = t.now, w.Outcome, "closed: "+w.Outcome, time.Time{}
		t.cases[w.ID] = c
		return "close case " + w.ID + ": " + w.Outcome, nil
	case lifecycle.Spend:
		books, alerts := t.guard.Spend(t.policy.Guard, t.base.census(), guard.Charge{
			Node: w.Node, Leaf: w.Leaf, Reason: w.Reason, Step: w.Step, At: w.At, Hard: w.Hard,
		})
		t.guard, t.guarded = books, true
		t.alert(w.Node, alerts)
		return fmt.Sprintf("spend %s %s", w.Step, w.Reason), nil
	case lifecycle.Note:
		return w.Text, nil
	}
	return "", fmt.Errorf("write %T: the apply loop does not know it", w)
}

// effect records an effect with an id that is never used again, and says it in words.
func (t *tx) effect(e lifecycle.Effect) (id, line string) {
	t.counters.Effect++
	p := pending{Seq: t.counters.Effect, Effect: wire.Effect{
		ID: "e" + strconv.FormatUint(t.counters.Effect, 10), Node: e.Node, Kind: e.Kind, Term: t.env.term, Args: e.Args,
		BootID: e.BootID, Created: t.now, Deadline: e.Deadline,
	}}
	t.effects[p.ID] = &p
	if e.Node != "" {
		t.woken[e.Node] = true
	}
	line = fmt.Sprintf("effect %s %s", p.ID, e.Kind)
	for _, k := range sortedKeys(e.Args) {
		line += " " + k + "=" + strconv.Quote(e.Args[k])
	}
	return p.ID, line
}

// firstPage reports whether a page with this key may go out: one an hour over the whole fleet. No key: always.
func (t *tx) firstPage(key string) bool {
	if key == "" {
		return true
	}
	books, first := t.guard.Page(key, t.now)
	if first {
		t.guard, t.guarded = books, true
	}
	return first
}

// alert sends what the guard wants a person to know. The guard itself says each thing once.
func (t *tx) alert(node string, alerts []guard.Alert) {
	for _, a := range alerts {
		t.page(node, a.Reason, a.Text)
	}
}

// page asks for a person outside any node's step.
func (t *tx) page(node, reason, text string) {
	t.effect(lifecycle.Effect{Kind: lifecycle.EffectPage, Node: node, Args: map[string]string{"reason": reason, "text": text}})
	t.record(wire.HistoryEntry{Node: node, Event: "page reason=" + reason, By: "assay", Detail: []string{text}})
}

// tick removes an effect that has ended.
func (t *tx) tick(id string) { t.effects[id] = nil }

func (t *tx) record(h wire.HistoryEntry) {
	t.counters.History++
	h.Cursor, h.At = cursor(t.counters.History), t.now
	h = wire.Chained(t.counters.Head, h)
	t.counters.Head = h.Hash
	t.history = append(t.history, h)
}

func (t *tx) put(key string, v any) {
	t.extra = append(t.extra, store.Op{Key: key, Value: marshal(key, v)})
}

func marshal(key string, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("coordinator: %s cannot be written as JSON: %v", key, err)) // our own types: a bug, not an input
	}
	return b
}

// ops are the etcd operations of the transaction, in a fixed order.
func (t *tx) ops() []store.Op {
	ops := slices.Clone(t.extra)
	put := func(key string, v any) { ops = append(ops, store.Op{Key: key, Value: marshal(key, v)}) }
	drop := func(key string) { ops = append(ops, store.Op{Key: key, Delete: true}) }
	for _, name := range sortedKeys(t.nodes) {
		put(keyNodes+name, t.nodes[name])
	}
	for _, id := range sortedKeys(t.cases) {
		put(keyCases+id, t.cases[id])
	}
	for _, id := range sortedKeys(t.effects) {
		if e := t.effects[id]; e != nil {
			put(keyEffects+id, e)
		} else if _, stored := t.base.effects[id]; stored {
			drop(keyEffects + id)
		}
	}
	for _, job := range sortedKeys(t.refusals) {
		if r := t.refusals[job]; r != nil {
			put(keyRefusals+job, r)
		} else {
			drop(keyRefusals + job)
		}
	}
	for _, node := range sortedKeys(t.reported) {
		put(keyReports+node, t.reported[node])
	}
	t.jobOps(put, drop)
	for _, h := range t.history {
		put(keyHistory+h.Cursor, h)
	}
	for n := max(t.base.counters.History, historyKept); n < t.counters.History; n++ {
		drop(keyHistory + cursor(n-historyKept+1))
	}
	if t.guarded {
		put(keyGuard, t.guard)
	}
	if t.governed {
		put(keyPolicy, t.policy)
		switch {
		case t.rollout != nil:
			put(keyRollout, t.rollout)
		case t.base.rollout != nil:
			drop(keyRollout)
		}
	}
	if !maps.Equal(t.learned, t.base.learned) {
		put(keyLearned, t.learned)
	}
	if t.drill != nil {
		put(keyDrill, t.drill)
	}
	for _, id := range sortedKeys(t.onces) {
		if k := t.onces[id]; k != nil {
			put(keyOnce+id, k)
		} else {
			drop(keyOnce + id)
		}
	}
	c := t.counters
	c.Time = t.now
	put(keyCounters, c)
	return lastOfEach(ops)
}

// lastOfEach keeps the last change of each key: a certificate may end and another be issued in one transaction.
func lastOfEach(ops []store.Op) []store.Op {
	last := make(map[string]int, len(ops))
	for i, op := range ops {
		last[op.Key] = i
	}
	out := ops[:0]
	for i, op := range ops {
		if last[op.Key] == i {
			out = append(out, op)
		}
	}
	return out
}

// size is how many operations there are, without making them.
func (t *tx) size() int {
	n := len(t.extra) + len(t.nodes) + len(t.cases) + len(t.refusals) + len(t.reported) + len(t.history) + len(t.onces) + t.jobSize() + 1 // the counters
	for id, e := range t.effects {
		if _, stored := t.base.effects[id]; e != nil || stored {
			n++
		}
	}
	if over := max(t.base.counters.History, historyKept); t.counters.History > over {
		n += int(t.counters.History - over)
	}
	if t.guarded {
		n++
	}
	if t.governed {
		n++
		if t.rollout != nil || t.base.rollout != nil {
			n++
		}
	}
	if !maps.Equal(t.learned, t.base.learned) {
		n++
	}
	if t.drill != nil {
		n++
	}
	return n
}

// refused lists the steps that this transaction found no room for: one for each node newly held back.
func (t *tx) refused() []string {
	var steps []string
	for _, name := range sortedKeys(t.nodes) {
		before, after := t.base.nodes[name], t.nodes[name]
		if after.Marked(lifecycle.MarkHeldBack, t.now) && !before.Marked(lifecycle.MarkHeldBack, t.now) {
			step := "drain"
			if after.State == lifecycle.Suspect || after.State == lifecycle.Certified {
				step = "suspend"
			}
			steps = append(steps, step)
		}
	}
	return steps
}

// clone is a savepoint: what is done to the copy leaves t as it is.
func (t *tx) clone() *tx {
	c := *t
	c.nodes, c.woken, c.cases = maps.Clone(t.nodes), maps.Clone(t.woken), maps.Clone(t.cases)
	c.effects, c.refusals = maps.Clone(t.effects), maps.Clone(t.refusals)
	c.tokens, c.reported = maps.Clone(t.tokens), maps.Clone(t.reported)
	c.tickets, c.parts, c.onces, c.ref = maps.Clone(t.tickets), maps.Clone(t.parts), maps.Clone(t.onces), ""
	c.jobChanges = t.jobChanges.clone()
	c.history, c.extra = slices.Clip(t.history), slices.Clip(t.extra)
	return &c
}

// publish makes the transaction the state, as of etcd revision rev.
func (t *tx) publish(rev uint64) {
	s := t.base
	for _, n := range t.nodes {
		s.setNode(n)
	}
	for id, c := range t.cases {
		s.cases[id] = c
		s.noteLast(c)
	}
	for _, id := range t.forgotten {
		delete(s.cases, id)
	}
	for id, e := range t.effects {
		if e == nil {
			s.dropEffect(id)
		} else {
			s.setEffect(*e)
		}
	}
	for job, r := range t.refusals {
		if r == nil {
			delete(s.refusals, job)
		} else {
			s.refusals[job] = *r
		}
	}
	maps.Copy(s.reported, t.reported)
	maps.Copy(s.tickets, t.tickets)
	maps.Copy(s.parts, t.parts)
	t.publishJobs()
	if t.ruled {
		s.book = t.book
	}
	if t.usage != nil {
		s.usage = *t.usage
	}
	for hash, r := range t.tokens {
		if r == nil {
			delete(s.tokens, hash)
		} else {
			s.tokens[hash] = *r
		}
	}
	if t.governed {
		for _, name := range t.changedPolicy() {
			s.versions[name] = rev
		}
	}
	for _, name := range t.relearnedNodes() {
		s.versions[name] = rev
	}
	if t.drill != nil {
		s.drill = *t.drill
	}
	for id, k := range t.onces {
		if k == nil {
			delete(s.onces, id)
		} else {
			s.onces[id] = *k
		}
	}
	s.learned = t.learned
	s.guard, s.policy, s.rollout, s.counters, s.revision = t.guard, t.policy, t.rollout, t.counters, rev
	s.counters.Time = t.now
	for name := range t.woken {
		s.versions[name] = rev
	}
}

func sortPending(es []pending) {
	slices.SortFunc(es, func(a, b pending) int { return cmp.Compare(a.Seq, b.Seq) })
}
