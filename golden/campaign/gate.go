package campaign

import (
	"fmt"
	"slices"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/netlist"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

// The goals for each netlist.
const (
	StuckGoal = 0.995
	LateGoal  = 0.98
)

// A Part is a count among others, with its bounds.
type Part struct {
	Found int     `json:"found"`
	Of    int     `json:"of"`
	Rate  float64 `json:"rate"`
	Low   float64 `json:"low"` // Clopper-Pearson, 95 %
	High  float64 `json:"high"`
}

func part(found, of int) Part {
	p := Part{Found: found, Of: of, High: 1}
	if of > 0 {
		p.Rate = float64(found) / float64(of)
		p.Low, p.High = ClopperPearson(found, of)
	}
	return p
}

// A GateLine is what the suite's operands show of one netlist's faults.
type GateLine struct {
	Netlist    string         `json:"netlist"`
	Does       string         `json:"does"`
	Gates      int            `json:"gates"`
	Partition  int            `json:"part"`
	Lane       int            `json:"lane"`
	Operations int            `json:"operations"` // that the suite gave the unit
	Workloads  int            `json:"workload_operations"`
	Stuck      GateShare      `json:"stuck"`
	Late       GateShare      `json:"transition"`
	Only       map[string]int `json:"only,omitempty"` // faults, of both kinds, that one kernel alone shows
}

// A GateShare is for one kind of fault. A fault counts when it changes a result of at least one workload.
type GateShare struct {
	Counted   Part     `json:"counted"`          // shown by the suite, among those that count
	All       Part     `json:"all"`              // among all
	Redundant int      `json:"redundant"`        // proven: no operands show them; not among all
	Missed    []string `json:"missed,omitempty"` // count, and the suite does not show them
	Unseen    []string `json:"unseen,omitempty"` // neither suite nor workloads show them, and no proof says that nothing can
	Proven    []string `json:"redundant_faults,omitempty"`
}

// A Trace is what one lane of one partition computes in the suite, by kernel, and in the workloads.
type Trace struct {
	Part, Lane int
	Kernels    []string
	suite      map[string]map[string]*Stream
	loads      []map[string]*Stream
}

// Trace runs the suite's kernels, at the runner's size, and the workloads, and keeps at most so many operations of each unit
// in each. tell, when not nil, hears of each before it runs.
func (r *Runner) Trace(part, lane, most int, tell func(name string)) (*Trace, error) {
	t := &Trace{Part: part, Lane: lane, suite: map[string]map[string]*Stream{}}
	one := &Runner{o: r.o, entries: r.entries}
	one.o.SMs = 1
	for i, id := range r.o.Kernels {
		k, _ := kernels.Lookup(id)
		if k.Skip(r.o.Capability) != "" {
			continue
		}
		if tell != nil {
			tell(id)
		}
		p := newTap(part, lane, most)
		d := ptxvm.NewDevice(ptxvm.Config{SMs: 1, Capability: r.o.Capability, Trace: p.one})
		if _, err := one.launch(d, k, uint32(i+1), r.o.Size.Steps(k)); err != nil {
			return nil, err
		}
		t.Kernels = append(t.Kernels, id)
		t.suite[id] = p.streams
	}
	ws, err := loadWorkloads(1)
	if err != nil {
		return nil, err
	}
	for _, w := range ws {
		if tell != nil {
			tell(w.name)
		}
		p := newTap(part, lane, most)
		d := ptxvm.NewDevice(ptxvm.Config{SMs: 1, Capability: r.o.Capability, Trace: p.one})
		if _, err := w.run(d, 1, tracedSteps); err != nil {
			return nil, fmt.Errorf("workload %s: %w", w.name, err)
		}
		t.loads = append(t.loads, p.streams)
	}
	return t, nil
}

// tracedSteps makes a workload as long as gives every unit that it uses some thousands of operations.
const tracedSteps = 256

// Grade says what the trace shows of a netlist's faults.
func (t *Trace) Grade(m netlist.Model) GateLine {
	n := m.Build()
	l := GateLine{Netlist: m.Name, Does: n.Does, Gates: n.Gates(), Partition: t.Part, Lane: t.Lane, Only: map[string]int{}}
	for _, id := range t.Kernels {
		l.Operations += len(t.suite[id][m.Name].Views)
	}
	for _, w := range t.loads {
		l.Workloads += len(w[m.Name].Views)
	}
	l.Stuck = t.share(n, m.Name, n.Stuck(), l.Only)
	l.Late = t.share(n, m.Name, n.LateFaults(), l.Only)
	return l
}

func (t *Trace) share(n *netlist.Netlist, model string, faults []netlist.Fault, only map[string]int) GateShare {
	times, who := make([]int, len(faults)), make([]string, len(faults))
	for _, id := range t.Kernels {
		s := t.suite[id][model]
		if len(s.Views) == 0 {
			continue
		}
		g := netlist.NewGrader(n, faults)
		g.Feed(s.Ops, s.Views)
		for i := range faults {
			if g.Found(i) {
				times[i]++
				who[i] = id
			}
		}
	}
	jobs := netlist.NewGrader(n, faults)
	for _, w := range t.loads {
		jobs.Break()
		jobs.Feed(w[model].Ops, w[model].Views)
	}
	var out GateShare
	var counted, countedFound, found int
	for i, f := range faults {
		if times[i] == 1 {
			only[who[i]]++
		}
		if times[i] > 0 {
			found++
		}
		switch {
		case jobs.Found(i):
			counted++
			if times[i] > 0 {
				countedFound++
			} else {
				out.Missed = append(out.Missed, f.String())
			}
		case times[i] > 0:
		case n.Redundant(f):
			out.Redundant++
			out.Proven = append(out.Proven, f.String())
		default:
			out.Unseen = append(out.Unseen, n.PartOf(f.Gate)+" "+f.String())
		}
	}
	out.Counted, out.All = part(countedFound, counted), part(found, len(faults)-out.Redundant)
	return out
}

// Worst gives of each netlist's lines the one with the lowest shares: a fault may sit in any lane.
func Worst(lines []GateLine) []GateLine {
	var out []GateLine
	for _, l := range lines {
		i := slices.IndexFunc(out, func(o GateLine) bool { return o.Netlist == l.Netlist })
		switch {
		case i < 0:
			out = append(out, l)
		case l.Stuck.Counted.Rate+l.Late.Counted.Rate < out[i].Stuck.Counted.Rate+out[i].Late.Counted.Rate:
			out[i] = l
		}
	}
	return out
}

// GateSize is how large the kernels run for a trace: the full size of a GPU, since the machine runs one SM only.
var GateSize = golden.Full
