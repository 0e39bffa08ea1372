package backfill

import (
	"math/bits"
	"time"

	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/timemap"
)

// blocked is the name of work that stands, in a snapshot made for one question, for all that the gang may not take.
const blocked = "\x00blocked"

// startNow places a job now on nodes that stay free for as long as it may run: where it was, if it lost a node there.
func (p *pass) startNow(j *Job) (scheduler.Plan, bool) {
	if len(j.Had) > 0 {
		back := func(s *scheduler.Snapshot, g scheduler.Gang) (scheduler.Plan, bool) {
			return scheduler.Back(s, g, j.Had)
		}
		if plan, ok := p.findNow(j, back); ok {
			return plan, true
		}
	}
	return p.findNow(j, scheduler.Find)
}

func (p *pass) findNow(j *Job, find func(*scheduler.Snapshot, scheduler.Gang) (scheduler.Plan, bool)) (scheduler.Plan, bool) {
	if p.at == nil { // nobody waits yet: whatever is free may be had
		p.out.Spots++
		return find(p.now.View(), j.Gang)
	}
	if j.Gang.Share.Kind != scheduler.NoShare {
		return p.shareNow(j)
	}
	ask := p.times().ask(&j.Gang)
	if ask.From > 0 {
		return scheduler.Plan{}, false
	}
	fit, ok := p.times().busy.Now(ask)
	if !ok {
		return scheduler.Plan{}, false
	}
	p.out.Spots++
	g := j.Gang
	nodes, block := p.fitting(fit, ask, func(i int32) uint32 { n := p.now.View().Node(i); return n.Free & n.Certificate.GPUs })
	g.Within = append(g.Within[:len(g.Within):len(g.Within)], p.snap.Set(nodes...))
	if len(block) == 0 {
		return find(p.now.View(), g)
	}
	if err := p.now.Start(&scheduler.Running{ID: blocked, Nodes: block}); err != nil {
		return scheduler.Plan{}, false
	}
	defer p.now.End(blocked)
	return find(p.now.View(), g)
}

// spotAt places a gang in a later slot.
func (p *pass) spotAt(g scheduler.Gang, fit timemap.Fit, own timemap.Owner) ([]scheduler.Take, bool) {
	p.out.Spots++
	at := p.times().grid.At(fit.Slot)
	g.Waited += time.Duration(at-p.out.At) * time.Second
	nodes, block := p.fitting(fit, p.times().ask(&g), p.times().busy.All)
	g.Within = append(g.Within[:len(g.Within):len(g.Within)], p.snap.Set(nodes...))
	f := p.idle.Edit()
	f.Tick(time.Unix(at, 0))
	if len(block) > 0 {
		if err := f.Start(&scheduler.Running{ID: blocked, Nodes: block}); err != nil {
			return nil, false
		}
	}
	plan, ok := scheduler.Find(f.View(), g)
	return plan.Nodes, ok
}

// fitting lists the nodes of a fit, and what of them the gang may not take: GPUs that the snapshot shows as usable, but that
// somebody else has for part of the time.
func (p *pass) fitting(fit timemap.Fit, ask timemap.Ask, usable func(int32) uint32) (nodes []int32, block []scheduler.Take) {
	nodes = make([]int32, 0, fit.Count)
	for w, word := range fit.Free {
		for ; word != 0; word &= word - 1 {
			i := int32(w*64 + bits.TrailingZeros64(word))
			nodes = append(nodes, i)
			if ask.GPUs == 0 {
				continue // all of it is free all the time
			}
			if taken := usable(i) &^ p.times().busy.Free(i, fit.Slot, fit.End, ask.Own); taken != 0 {
				block = append(block, scheduler.Take{Node: i, GPUs: taken})
			}
		}
	}
	return nodes, block
}

// shareNow places a job that needs part of a GPU. Running parts of that GPU do not stand in its way, claims of jobs before
// it do.
func (p *pass) shareNow(j *Job) (scheduler.Plan, bool) {
	g := j.Gang
	end := p.times().end(p.out.At + scheduler.Seconds(g.Limit))
	for range 8 { // nodes that turn out to be promised are left out, a few times
		p.out.Spots++
		plan, ok := scheduler.Find(p.now.View(), g)
		if !ok {
			return plan, false
		}
		var promised []int32
		for _, t := range plan.Nodes {
			if p.times().promised(t.Node, mask(t), end) {
				promised = append(promised, t.Node)
			}
		}
		if len(promised) == 0 {
			return plan, true
		}
		g.Except = append(g.Except[:len(g.Except):len(g.Except)], p.snap.Set(promised...))
	}
	return scheduler.Plan{}, false
}
