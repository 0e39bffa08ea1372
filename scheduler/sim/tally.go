package sim

import (
	"cmp"
	"slices"

	"github.com/assay-gpu/assay/scheduler/queue"
)

// A tally measures a run while it goes on. GPU seconds are counted from the first job's coming to the last one's: what comes
// after is the fleet running empty.
type tally struct {
	impossible, givenUp                          int
	faults, screenedOut, caught, corrupted       int
	busy, down, waitingIdle, useful, lost, wrong float64 // GPU seconds
	until                                        int64   // the last arrival
	using, out                                   float64 // GPUs in use and out of service now
	last                                         int64
	series                                       []Point
	every                                        int64
	spans                                        []Span
}

// A Point is the fleet at one second.
type Point struct {
	At      int64   `json:"at"`
	Used    float64 `json:"used"`  // GPUs
	Down    float64 `json:"down"`  // GPUs out of service
	Split   float64 `json:"split"` // free GPUs on nodes that are partly in use
	Pending int     `json:"pending"`
}

// A Span is a job on one node.
type Span struct {
	Node     int32 `json:"node"`
	From, To int64
	Job      int64
	GPUs     int
	Died     bool
}

// Bounds of what is kept for the charts.
const (
	points    = 400
	ganttRows = 48
	ganttMost = 8000
)

func (t *tally) begin(r *run) {
	t.until = int64(float64(r.trace.Jobs[len(r.trace.Jobs)-1].Submit) / r.o.Load)
	t.every = max(1, t.until/points)
}

// advance counts what passes between the last event and this one.
func (t *tally) advance(r *run, now int64) {
	dt := float64(min(now, t.until) - min(t.last, t.until))
	t.out = 0
	if dt > 0 {
		for i := range r.health {
			if r.health[i].down {
				t.out += float64(r.c.shapes[i].GPUs)
			}
		}
		t.busy += dt * t.using
		t.down += dt * t.out
		if len(r.cycle.Queue.Pending()) > 0 {
			t.waitingIdle += dt * max(0, float64(r.c.gpus)-t.using-t.out)
		}
	}
	split := -1.0 // nothing changes between two events
	for n := int64(len(t.series)); n*t.every <= now && n <= points; n = int64(len(t.series)) {
		if split < 0 {
			split = r.split()
		}
		t.series = append(t.series, Point{n * t.every, t.using, t.out, split, len(r.cycle.Queue.Pending())})
	}
	t.last = now
}

func (t *tally) started(r *run, w *work) { t.using += w.gang }

// ran counts a run that has ended, of whose seconds saved were useful.
func (t *tally) ran(r *run, w *work, saved int64, state queue.State) {
	t.using -= w.gang
	t.useful += float64(saved) * w.gang
	t.lost += float64(r.now-w.since-saved) * w.gang
	wrongFrom := int64(never)
	for _, n := range w.takes {
		if at := r.health[n.Node].wrongFrom; at > 0 {
			wrongFrom = min(wrongFrom, max(at, w.since))
		}
		if n.Node < ganttRows && len(t.spans) < ganttMost {
			t.spans = append(t.spans, Span{n.Node, w.since, r.now, w.ID, w.GPUs, state == queue.NodeFail || state == queue.Preempted})
		}
	}
	if wrongFrom < r.now {
		t.wrong += min(float64(r.now-wrongFrom), float64(saved)) * w.gang
	}
}

// A Class is jobs of about one size.
type Class struct {
	Name     string  `json:"name"`
	Jobs     int     `json:"jobs"`
	MeanWait float64 `json:"mean_wait_s"`
	P95Wait  float64 `json:"p95_wait_s"`
	MaxWait  float64 `json:"max_wait_s"`
	Slowdown float64 `json:"bounded_slowdown"` // mean of max(1, (wait+run)/max(run, 10 s))
}

// classes are sizes in GPUs up to and with.
var classes = []struct {
	name string
	most float64
}{{"part of a GPU", 0.999}, {"1 GPU", 1}, {"2-7 GPUs", 7.999}, {"8 GPUs", 8}, {"9-64 GPUs", 64}, {"65-512 GPUs", 512}, {"over 512 GPUs", 1e12}}

// A Result is what came of a run.
type Result struct {
	Policy      string         `json:"policy"`
	Gating      bool           `json:"gating"`
	Seed        uint64         `json:"seed"`
	Nodes       int            `json:"nodes"`
	GPUs        int            `json:"gpus"`
	Jobs        int            `json:"jobs"`
	Completed   int            `json:"completed"`
	TimedOut    int            `json:"timed_out"`
	Impossible  int            `json:"impossible"`           // larger than the fleet
	GivenUp     int            `json:"given_up"`             // died too often
	Skipped     map[string]int `json:"skipped"`              // lines of the trace that were left out
	Unreadable  []Fault        `json:"unreadable,omitempty"` // the first lines that could not be read
	Makespan    int64          `json:"makespan_s"`           // to the last end
	Window      int64          `json:"window_s"`             // to the last arrival: shares of GPU time are of this
	Utilisation float64        `json:"utilisation"`          // GPU time in use
	Down        float64        `json:"down"`                 // GPU time out of service
	IdleWaiting float64        `json:"idle_while_waiting"`
	Goodput     float64        `json:"goodput"` // of the GPU time used: useful and right
	Lost        float64        `json:"lost"`    // of the GPU time used: not saved before an interruption
	Wrong       float64        `json:"wrong"`   // of the GPU time used: computed on a node that computes wrongly
	LostHours   float64        `json:"lost_gpu_hours"`
	WrongHours  float64        `json:"wrong_gpu_hours"`
	Faults      int            `json:"faults"`
	ScreenedOut int            `json:"screened_out"`
	Corrupted   int            `json:"sdc_nodes"`
	Caught      int            `json:"sdc_found"`
	Restarts    int            `json:"restarts"`
	Leaves      float64        `json:"leaves_over_bound"`     // of gangs of several nodes
	Reachable   float64        `json:"leaves_over_reachable"` // over the fewest among the nodes that were free at each start
	Split       float64        `json:"split"`                 // of the GPUs free: on nodes that are partly in use
	Gangs       int            `json:"gangs"`
	All         Class          `json:"all"`
	Classes     []Class        `json:"classes"`
	Series      []Point        `json:"series"`
	Spans       []Span         `json:"-"`
	Rows        []string       `json:"-"` // names of the nodes in Spans
}

func (r *run) result() *Result {
	t := &r.tally
	x := &Result{Policy: r.o.Policy, Gating: r.o.Faults.Gating, Seed: r.o.Seed, Nodes: len(r.o.Nodes), GPUs: r.c.gpus, Jobs: len(r.work), Impossible: t.impossible, GivenUp: t.givenUp,
		Skipped: r.trace.Skipped, Unreadable: r.trace.Faults, Makespan: r.now, Window: t.until, Faults: t.faults, ScreenedOut: t.screenedOut, Corrupted: t.corrupted, Caught: t.caught,
		LostHours: t.lost / 3600, WrongHours: t.wrong / 3600, Series: t.series, Spans: t.spans}
	capacity := float64(r.c.gpus) * float64(max(1, t.until))
	x.Utilisation, x.Down, x.IdleWaiting = t.busy/capacity, t.down/capacity, t.waitingIdle/capacity
	if used := t.useful + t.lost; used > 0 {
		x.Goodput, x.Lost, x.Wrong = (t.useful-t.wrong)/used, t.lost/used, t.wrong/used
	}
	for i := range min(ganttRows, len(r.o.Nodes)) {
		x.Rows = append(x.Rows, r.name(int32(i)))
	}
	used, bound, reach := 0, 0, 0
	waits, slow := make([][]float64, len(classes)+1), make([]float64, len(classes)+1)
	for i := range r.work {
		w := &r.work[i]
		if w.began < 0 {
			continue
		}
		switch w.state {
		case queue.Completed:
			x.Completed++
		case queue.Timeout:
			x.TimedOut++
		}
		x.Restarts += w.runs - 1
		if w.Nodes > 1 {
			x.Gangs++
			used, bound, reach = used+w.leaves, bound+w.bound, reach+w.reach
		}
		wait := float64(w.began) - float64(int64(float64(w.Submit)/r.o.Load))
		run := float64(w.Run)
		k := slices.IndexFunc(classes, func(c struct {
			name string
			most float64
		}) bool {
			return w.gang <= c.most
		})
		for _, at := range []int{k, len(classes)} {
			waits[at] = append(waits[at], wait)
			slow[at] += max(1, (wait+run)/max(run, 10))
		}
	}
	if bound > 0 {
		x.Leaves, x.Reachable = float64(used)/float64(bound), float64(used)/float64(reach)
	}
	var split, free float64
	for _, p := range t.series {
		split, free = split+p.Split, free+max(0, float64(r.c.gpus)-p.Used-p.Down)
	}
	if free > 0 {
		x.Split = split / free
	}
	for i, c := range classes {
		if len(waits[i]) > 0 {
			x.Classes = append(x.Classes, class(c.name, waits[i], slow[i]))
		}
	}
	x.All = class("all", waits[len(classes)], slow[len(classes)])
	return x
}

func class(name string, waits []float64, slow float64) Class {
	c := Class{Name: name, Jobs: len(waits)}
	if len(waits) == 0 {
		return c
	}
	slices.SortFunc(waits, cmp.Compare[float64])
	sum := 0.0
	for _, w := range waits {
		sum += w
	}
	n := float64(len(waits))
	c.MeanWait, c.P95Wait, c.MaxWait, c.Slowdown = sum/n, waits[int(0.95*(n-1))], waits[len(waits)-1], slow/n
	return c
}
