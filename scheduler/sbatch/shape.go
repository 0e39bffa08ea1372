package sbatch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/scheduler"
)

// near is required, preferred or anywhere; the former two with :HEIGHT, the highest common switch, 0 a leaf.
func near(r *Request, v string) error {
	word, height, given := strings.Cut(v, ":")
	if err := r.Gang.Near.UnmarshalText([]byte(word)); err != nil {
		return err
	}
	if !given {
		return nil
	}
	n, err := strconv.ParseUint(height, 10, 8)
	if err != nil || r.Gang.Near != scheduler.Required && r.Gang.Near != scheduler.Preferred {
		return fmt.Errorf("%q: want required:HEIGHT or preferred:HEIGHT, with 0 for a leaf", v)
	}
	r.Gang.Height = int(n)
	return nil
}

// parallel is the shape of a training job: tp=8,pp=4,dp=16. What is left out is 1.
func parallel(r *Request, v string) error {
	p := scheduler.Parallel{TP: 1, PP: 1, DP: 1}
	for part := range strings.SplitSeq(v, ",") {
		name, text, _ := strings.Cut(part, "=")
		n, err := strconv.ParseUint(text, 10, 20)
		if err != nil || n == 0 {
			return fmt.Errorf("%q: want tp=N,pp=N,dp=N", v)
		}
		switch name {
		case "tp":
			p.TP = int(n)
		case "pp":
			p.PP = int(n)
		case "dp":
			p.DP = int(n)
		default:
			return fmt.Errorf("%q: want tp=N,pp=N,dp=N", v)
		}
	}
	r.parallel = &p
	return nil
}

// shaped makes nodes and slices of a parallel shape. It needs to know how many GPUs a node has.
func (p *parser) shaped(perNode int) {
	r := &p.r
	if perNode == 0 {
		p.fault(0, "--parallel", "say with --gpus-per-node how many GPUs a node has")
		return
	}
	asked := r.Gang.Nodes
	r.Gang.ID = "script"
	g, err := r.parallel.Shape(r.Gang, perNode)
	if err != nil {
		p.fault(0, "--parallel", "%v", err)
		return
	}
	if r.nodes > 0 && g.Nodes != asked {
		p.fault(0, "--parallel", "it makes %d nodes of %d GPUs, and --nodes asks for %d", g.Nodes, perNode, asked)
	}
	g.Ranks = r.perNode
	r.Gang = g
}
