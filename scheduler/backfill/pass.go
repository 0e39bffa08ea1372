package backfill

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/timemap"
)

// A pass is one walk through the order.
type pass struct {
	snap   *scheduler.Snapshot
	order  []Job
	gate   Gate
	o      Options
	before map[string]Planned

	at      *times              // made when first somebody must wait
	now     *scheduler.Fleet    // as it is, with all that starts in this pass
	idle    *scheduler.Snapshot // were nobody running; made with at
	large   int                 // nodes of the largest leaf
	failed  map[shape]bool      // does not fit now
	first   map[shape]int32     // no earlier slot than this
	started map[string]bool

	reserved int   // jobs that were looked at for a later start
	ways     []int // room for those of the job that is looked at

	out Schedule
}

func newPass(snap *scheduler.Snapshot, order []Job, gate Gate, o Options, before map[string]Planned) *pass {
	p := &pass{snap: snap, order: order, gate: gate, o: o, before: before, now: snap.Edit(), failed: map[shape]bool{}, first: map[shape]int32{},
		started: map[string]bool{}, out: Schedule{At: snap.Now().Unix(), Planned: map[string]Planned{}}}
	t := snap.Tree()
	for l := range t.Leaves() {
		p.large = max(p.large, int(t.Switches[l].Hi-t.Switches[l].Lo))
	}
	return p
}

// times is who is free when. As long as everybody starts at once nobody asks for it.
func (p *pass) times() *times {
	if p.at != nil {
		return p.at
	}
	p.at = newTimes(p.snap, p.o)
	for _, s := range p.out.Starts {
		p.claimNow(s.Index, s.Plan.Nodes)
	}
	f := p.snap.Edit()
	for _, r := range p.at.running {
		f.End(r.ID)
	}
	if p.o.Renew {
		for i := range int32(p.snap.Len()) {
			if c := p.snap.Node(i).Certificate; c.Level != checks.NoLevel {
				c.Issued, c.Expires = p.snap.Now(), p.snap.Now().Add(2*time.Duration(p.o.Window)*time.Second)
				f.Certify(i, c)
			}
		}
	}
	p.idle = f.Snapshot()
	return p.at
}

// claimNow claims the nodes of a job that starts now.
func (p *pass) claimNow(i int, nodes []scheduler.Take) {
	if len(p.order[i].Kept) > 0 {
		return // claimed by keep
	}
	end := p.at.end(p.out.At + scheduler.Seconds(p.order[i].Gang.Limit))
	for _, t := range nodes {
		p.at.claim(t, 0, end, p.at.job(i))
	}
}

func (p *pass) run() *Schedule {
	p.keep()
	for i := 0; i < len(p.order); {
		next := i + 1
		for next < len(p.order) && p.order[next].ID == p.order[i].ID {
			next++
		}
		if !p.visit(i, next) {
			break
		}
		i = next
	}
	return &p.out
}

// visit starts a job, plans its start, or does neither. The ways to start it are those from place i to next. It reports whether
// those behind may be looked at.
func (p *pass) visit(i, next int) bool {
	if j := &p.order[i]; len(j.Kept) > 0 {
		p.kept(i, j)
		return true
	}
	ways := p.ways[:0]
	for k := i; k < next; k++ {
		j := &p.order[k]
		if p.gate != nil && !p.gate.Admit(k) {
			p.out.Limited = append(p.out.Limited, k)
			continue
		}
		ways = append(ways, k)
		if s, shared := shapeOf(&j.Gang); !shared || !p.failed[s] {
			if plan, ok := p.startNow(j); ok {
				p.start(k, j, plan)
				return true
			}
			p.times() // from here on somebody waits
			p.failed[s] = true
		}
	}
	p.ways = ways
	if len(ways) == 0 {
		return true
	}
	j := &p.order[ways[0]]
	reserves := i < p.o.Depth || j.Gang.Nodes > p.large
	if p.o.EASY {
		reserves = p.reserved == 0
	}
	if p.o.Strict {
		return false // nobody passes one that waits
	}
	if !reserves || j.NoReserve {
		return true
	}
	p.reserved++
	was, planned := p.before[j.ID]
	for _, k := range ways {
		if planned && p.holds(&p.order[k], &was) {
			p.plan(k, &p.order[k], was)
			return true
		}
	}
	if p.before == nil || planned || j.Urgent {
		p.reserve(ways)
	}
	return true
}

// reserve plans the earliest start that any of those ways has.
func (p *pass) reserve(ways []int) {
	var first Planned
	way := -1
	for _, k := range ways {
		j := &p.order[k]
		s, shared := shapeOf(&j.Gang)
		if next, ok := p.later(j, s, shared); ok && (way < 0 || next.Start < first.Start) {
			first, way = next, k
		}
	}
	if way >= 0 {
		p.plan(way, &p.order[way], first)
	}
}

// keep claims, before anybody is looked at, what was freed for preemptors.
func (p *pass) keep() {
	for i := range p.order {
		j := &p.order[i]
		for _, t := range j.Kept {
			p.times().claim(t, 0, p.times().end(max(j.KeptUntil, p.out.At)+scheduler.Seconds(j.Gang.Limit)), p.times().job(i))
		}
	}
}

// kept starts a preemptor on what was freed for it, once all of it is free.
func (p *pass) kept(i int, j *Job) {
	free := true
	for _, t := range j.Kept {
		n := p.snap.Node(t.Node)
		free = free && t.GPUs&^n.Free == 0 && n.Bar == nil
	}
	if free && (p.gate == nil || p.gate.Admit(i)) {
		p.start(i, j, scheduler.Plan{Gang: j.Gang.ID, At: p.snap.Now(), Nodes: j.Kept})
		return
	}
	start := max(j.KeptUntil, p.out.At)
	p.out.Planned[j.ID] = Planned{ID: j.ID, Start: start, End: start + scheduler.Seconds(j.Gang.Limit), Nodes: j.Kept}
}

// start gives a job its nodes from now on.
func (p *pass) start(i int, j *Job, plan scheduler.Plan) {
	if err := p.now.Start(&scheduler.Running{ID: j.ID, Nodes: plan.Nodes}); err != nil {
		return // somebody has them after all: it waits
	}
	if p.at != nil {
		p.claimNow(i, plan.Nodes)
	}
	if p.gate != nil {
		p.gate.Charge(i)
	}
	p.started[j.ID] = true
	p.out.Starts = append(p.out.Starts, Start{i, plan})
}

// plan gives a job its nodes from a later time on.
func (p *pass) plan(i int, j *Job, next Planned) {
	for _, t := range next.Nodes {
		p.times().claim(t, p.times().grid.Down(next.Start), p.times().end(next.End), p.times().job(i))
	}
	p.out.Planned[j.ID] = next
}

// holds reports whether a start planned before can still be kept.
func (p *pass) holds(j *Job, was *Planned) bool {
	if was.Start <= p.out.At {
		return false
	}
	from, to := p.times().grid.Down(was.Start), p.times().end(was.End)
	ask := p.times().ask(&j.Gang)
	for _, t := range was.Nodes {
		if ask.Latest[t.Node] < from || mask(t)&^p.times().busy.Free(t.Node, from, to, ask.Own) != 0 {
			return false
		}
	}
	return true
}

// later is the earliest start after now.
func (p *pass) later(j *Job, s shape, shared bool) (Planned, bool) {
	g := j.Gang
	if g.Share.Kind != scheduler.NoShare { // planned as if it needed a whole GPU
		g.Share, g.GPUs = scheduler.Share{}, 1
	}
	ask := p.times().ask(&g)
	ask.From = max(ask.From, 1)
	if shared {
		ask.From = max(ask.From, p.first[s])
	}
	if ask.Until = p.times().grid.Slots() - 1; ask.From > ask.Until {
		return Planned{}, false
	}
	var next Planned
	p.out.Sweeps++
	slot, ok := p.times().busy.Sweep(ask, func(fit timemap.Fit) bool {
		takes, ok := p.spotAt(g, fit, ask.Own)
		if !ok {
			return false
		}
		start := p.times().grid.At(fit.Slot)
		next = Planned{ID: j.ID, Start: start, End: start + scheduler.Seconds(g.Limit), Nodes: takes, Cause: p.why(&g, takes, fit.Slot)}
		return true
	})
	if shared {
		if p.first[s] = slot; !ok {
			p.first[s] = p.times().grid.Slots() // nor will any of its shape find one
		}
	}
	return next, ok
}

// mask is the GPUs that a take has, a shared one among them.
func mask(t scheduler.Take) uint32 {
	if t.Part.Kind != scheduler.NoShare {
		return t.GPUs | 1<<t.Part.GPU
	}
	return t.GPUs
}

// A shape is all that decides where a gang fits: of two of one shape the later in the order fits nowhere that the earlier
// did not.
type shape struct {
	nodes, gpus, height, switches, group, segment, segmentHeight, joined, perLeaf int
	whole, through, insists, spread, sameGrade                                    bool
	share                                                                         scheduler.Share
	limit, maxAge, minRemaining                                                   time.Duration
	level                                                                         int
	near                                                                          scheduler.Nearness
	reserved                                                                      string
	within                                                                        [2]*scheduler.NodeSet
}

// shapeOf is g's shape; ok is false for a gang with so many wishes of its own that it is not worth comparing.
func shapeOf(g *scheduler.Gang) (s shape, ok bool) {
	if len(g.Within) > 2 || len(g.Except) > 0 {
		return shape{}, false
	}
	s = shape{nodes: g.Nodes, gpus: g.GPUs, height: g.Height, switches: g.Switches, group: g.Group, segment: g.Segment, segmentHeight: g.SegmentHeight,
		joined: g.Joined, perLeaf: g.PerLeaf, whole: g.Whole, through: g.Through, insists: g.Insists(), spread: g.Spread, sameGrade: g.SameGrade,
		share: g.Share, limit: g.Limit, maxAge: g.MaxAge, minRemaining: g.MinRemaining, level: int(g.Level), near: g.Near, reserved: g.Reserved}
	copy(s.within[:], g.Within)
	return s, true
}
