package sim

import (
	"fmt"
	"time"

	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/cycle"
)

// A Filling is what came of placing a trace's jobs in their order until all have been tried; none ends.
type Filling struct {
	Nodes     int            `json:"nodes"`
	GPUs      int            `json:"gpus"`
	Jobs      int            `json:"jobs"`
	Placed    int            `json:"placed"`
	Refused   int            `json:"refused"`
	Skipped   map[string]int `json:"skipped"`
	Faults    []Fault        `json:"unreadable,omitempty"` // the first lines that could not be read
	Asked     float64        `json:"asked"`                // GPUs, over those there are
	Allocated float64        `json:"allocated"`            // GPUs, over those there are
	First     float64        `json:"first_refusal"`        // GPUs allocated when a job was first refused, over those there are
	Steps     []Step         `json:"steps"`
}

// A Step is how far the filling had come.
type Step struct {
	Asked     float64 `json:"asked"`
	Allocated float64 `json:"allocated"`
}

// Fill places jobs one after the other, as FGD (Weng et al., ATC'23) measures fragmentation: how much of the fleet can be
// given out while more and more is asked.
func Fill(t *Trace, o Options) (*Filling, error) {
	if len(o.Nodes) == 0 || o.Leaf < 1 {
		return nil, fmt.Errorf("to fill a fleet takes nodes, and leaves of one node or more")
	}
	c, err := newCluster(o.Nodes, o.Leaf)
	if err != nil {
		return nil, err
	}
	for i := range o.Nodes {
		c.certify(int32(i), uint64(i+1), 0, 365*86400)
	}
	r := run{c: c, within: map[string]*scheduler.NodeSet{}}
	f := &Filling{Nodes: len(o.Nodes), GPUs: c.gpus, Jobs: len(t.Jobs), Skipped: t.Skipped, Faults: t.Faults, First: -1}
	asked, given := 0.0, 0.0
	for i := range t.Jobs {
		j := &t.Jobs[i]
		size := float64(j.Nodes*j.GPUs) + float64(j.Nodes*j.Share)/100
		asked += size
		g := scheduler.Gang{ID: cycle.ID(j.ID), Nodes: j.Nodes, GPUs: j.GPUs, Limit: time.Hour}
		if j.Share > 0 {
			g.Share = scheduler.Share{Kind: scheduler.MPS, Amount: j.Share}
		}
		if set := r.models(j); set != nil {
			g.Within = []*scheduler.NodeSet{set}
		}
		if p, ok := scheduler.Find(c.fleet.View(), g); ok {
			if err := c.fleet.Start(&scheduler.Running{ID: g.ID, Nodes: p.Nodes}); err != nil {
				return nil, err
			}
			given += size
			f.Placed++
		} else {
			if f.Refused++; f.First < 0 {
				f.First = given / float64(c.gpus)
			}
		}
		if i%max(1, len(t.Jobs)/points) == 0 || i == len(t.Jobs)-1 {
			f.Steps = append(f.Steps, Step{asked / float64(c.gpus), given / float64(c.gpus)})
		}
		if o.Progress != nil {
			o.Progress(i+1, len(t.Jobs))
		}
	}
	f.Asked, f.Allocated = asked/float64(c.gpus), given/float64(c.gpus)
	return f, nil
}
