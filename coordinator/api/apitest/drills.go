package apitest

import (
	"context"
	"net/http"
	"time"

	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// drillSteps are the steps of the plane's drills: each look takes one.
var drillSteps = []wire.DrillStep{
	{Name: "made", Detail: []string{"NVRM: Xid (PCI:0000:3b:00): 79, assay drill"}},
	{Name: "detected", Detail: []string{"drill: xid 79"}},
	{Name: "decided", Detail: []string{"would: certified -> draining", "would: revoke 101"}},
	{Name: "paged"},
	{Name: "returned", Detail: []string{"certificate 101 holds"}},
}

// Drill implements api.Drills. A drill on gpu002 does not come back.
func (p *Plane) Drill(context.Context) (wire.Drill, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := &p.drill
	if d.ID == "" || !d.Ended.IsZero() {
		return *d, nil
	}
	if n := len(d.Steps) - 1; n < len(drillSteps) && (d.Node != "gpu002" || n < 3) {
		s := drillSteps[n]
		s.At = d.Started.Add(time.Duration(n+1) * 1200 * time.Millisecond)
		d.Steps = append(d.Steps, s)
		return *d, nil
	}
	d.Ended, d.Outcome = d.Deadline, wire.DrillPassed
	if d.Node == "gpu002" {
		d.Outcome, d.Why = wire.DrillFailed, `it was not back within 2m0s; the step "paged" did not come`
	} else {
		d.LastPassed = d.Ended
	}
	return *d, nil
}

// StartDrill implements api.Drills.
func (p *Plane) StartDrill(_ context.Context, by string, ask wire.DrillAsk) (wire.Drill, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ask.Node == "" {
		ask.Node = "gpu001"
	}
	n := p.nodes[ask.Node]
	switch {
	case n == nil:
		return wire.Drill{}, unknownNode(ask.Node)
	case n.State != "certified":
		return wire.Drill{}, api.Errorf(http.StatusConflict, "drill on %s: it is %s and holds no valid certificate", ask.Node, n.State)
	case p.drill.ID != "" && p.drill.Ended.IsZero():
		return wire.Drill{}, api.Errorf(http.StatusConflict, "drill %s on %s is under way", p.drill.ID, p.drill.Node)
	}
	gpu := 0
	if ask.GPU != nil {
		gpu = *ask.GPU
	}
	now := p.Now()
	p.drill = wire.Drill{
		ID: "D-7F3K", Node: ask.Node, GPU: gpu, By: by, Reason: ask.Reason, Drains: ask.AcceptRisk == wire.RiskDrain, Started: now, Deadline: now.Add(2 * time.Minute),
		Steps: []wire.DrillStep{{Name: "ordered", At: now, Detail: []string{ask.Node}}}, Waits: "made",
	}
	return p.drill, nil
}
