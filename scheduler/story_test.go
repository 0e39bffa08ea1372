package scheduler

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// TestStories plays what users of other schedulers complained of, and what the design promises.
//
//	fleet shape=NAME: the topology.conf in the input, all nodes certified quick for 12 h
//	see nodes=… [shape=…] [grade=N]       certify nodes=… [level=…] [left=…] [age=…] [gpus=MASK]
//	revoke nodes=…                        bar nodes=… why=… [by=…]     unbar nodes=…
//	reserve name=… nodes=… [in=…] [for=…] [nobody]
//	place ID field=value …                starts what it places; with dry it does not
//	why ID field=value …                  the same in words
//	whatif ID ends=A,B field=value …      the same on a copy in which that work has ended
//	end ID    tick D    swap ID lost=…    ranks ID    free nodes=…    replay ID field=value …
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		w := &stage{t: t, gangs: map[string]Gang{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.d = d
			return strings.TrimRight(w.play(), "\n") + "\n"
		})
	})
}

type stage struct {
	t     *testing.T
	d     *datadriven.TestData
	f     *Fleet
	gangs map[string]Gang
}

var storyShapes = map[string]*topo.Shape{
	"h100":  eight,
	"pairs": topo.Pairs("pairs", 8, []int{0, 2}, []int{1, 3}, []int{4, 5}, []int{6, 7}),
	"pcie":  topo.NewShape("pcie", 4, false),
	"gb200": topo.NewShape("gb200", 4, true),
	"l40s":  func() *topo.Shape { s := topo.NewShape("l40s", 2, false); s.Memory, s.Shards = 48, 4; return s }(),
	"mig":   func() *topo.Shape { s := topo.NewShape("mig", 2, false); s.Memory, s.MIG = 80, 0b11; return s }(),
}

func (w *stage) value(key string) string {
	for _, a := range w.d.CmdArgs {
		if a.Key == key {
			return strings.Join(a.Vals, ",")
		}
	}
	return ""
}

func (w *stage) duration(key string, otherwise time.Duration) time.Duration {
	v := w.value(key)
	if v == "" {
		return otherwise
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		w.d.Fatalf(w.t, "%v", err)
	}
	return d
}

func (w *stage) nodes(key string) []int32 {
	names, err := hostlist.Expand(w.value(key))
	if err != nil {
		w.d.Fatalf(w.t, "%v", err)
	}
	var out []int32
	for _, n := range names {
		i, ok := w.f.View().Tree().Node(n)
		if !ok {
			w.d.Fatalf(w.t, "no node %s", n)
		}
		out = append(out, i)
	}
	return out
}

func (w *stage) play() string {
	d := w.d
	if d.Cmd == "fleet" {
		tr, faults := topo.Parse(d.Input, nil)
		if tr == nil {
			d.Fatalf(w.t, "%v", faults)
		}
		w.f, w.gangs = certified(w.t, tr, storyShapes[w.value("shape")]), map[string]Gang{}
		return fmt.Sprintf("%d nodes", len(tr.Nodes))
	}
	now := w.f.View().Now()
	switch d.Cmd {
	case "see":
		for _, i := range w.nodes("nodes") {
			shape := w.f.View().Node(i).Shape
			if s := w.value("shape"); s != "" {
				shape = storyShapes[s]
			}
			grade, _ := strconv.Atoi(w.value("grade")) // none is 0
			if err := w.f.See(i, shape, uint8(grade)); err != nil {
				return err.Error()
			}
			w.f.Certify(i, Certificate{Serial: 1, Level: checks.Quick, GPUs: shape.All(), Issued: now, Expires: now.Add(12 * time.Hour)})
		}
	case "certify":
		for _, i := range w.nodes("nodes") {
			c := Certificate{Serial: 2, Level: checks.Quick, GPUs: w.f.View().Node(i).Shape.All(), Issued: now.Add(-w.duration("age", 0)), Expires: now.Add(w.duration("left", 12*time.Hour))}
			if l := w.value("level"); l != "" {
				if err := c.Level.UnmarshalText([]byte(l)); err != nil {
					d.Fatalf(w.t, "%v", err)
				}
			}
			if m := w.value("gpus"); m != "" {
				x, err := strconv.ParseUint(m, 0, 32)
				if err != nil {
					d.Fatalf(w.t, "%v", err)
				}
				c.GPUs = uint32(x)
			}
			w.f.Certify(i, c)
		}
	case "revoke":
		for _, i := range w.nodes("nodes") {
			w.f.Revoke(i)
		}
	case "bar":
		for _, i := range w.nodes("nodes") {
			w.f.Bar(i, Bar{Why: strings.ReplaceAll(w.value("why"), "_", " "), Since: now, By: w.value("by")})
		}
	case "unbar":
		for _, i := range w.nodes("nodes") {
			w.f.Unbar(i)
		}
	case "reserve":
		r := Reservation{Name: w.value("name"), Start: now.Add(w.duration("in", 0)), Nodes: w.f.View().Set(w.nodes("nodes")...), Nobody: d.HasArg("nobody")}
		r.End = r.Start.Add(w.duration("for", time.Hour))
		w.f.Reserve(r)
	case "tick":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(w.t, "%v", err)
		}
		w.f.Tick(now.Add(by))
	case "end":
		if !w.f.End(d.CmdArgs[0].Key) {
			return "no such work"
		}
	case "place", "why", "replay":
		return w.place()
	case "whatif":
		real, before := w.f, w.f.View().Fingerprint()
		defer func() { w.f = real }()
		w.f = w.f.Snapshot().Edit()
		for _, id := range strings.Split(w.value("ends"), ",") {
			if !w.f.End(id) {
				d.Fatalf(w.t, "no work %s", id)
			}
		}
		answer := w.place()
		if real.View().Fingerprint() != before {
			w.t.Errorf("%s: what was tried on a copy changed the fleet", d.Pos)
		}
		return answer
	case "swap":
		id := d.CmdArgs[0].Key
		held := w.f.Work(id).Nodes
		p := Swap(w.f.View(), w.gangs[id], held, w.nodes("lost"))
		if !p.OK() {
			g := w.gangs[id]
			return "no: " + w.f.View().Why(g, p.Refused)
		}
		if err := fits(w.f.View(), w.gangs[id], p, held); err != nil {
			w.t.Errorf("%s: %v", d.Pos, err)
		}
		w.f.End(id)
		if err := w.f.Start(&Running{ID: id, Nodes: p.Nodes}); err != nil {
			w.t.Errorf("%s: %v", d.Pos, err)
		}
		return w.plan(p)
	case "ranks":
		id := d.CmdArgs[0].Key
		var b strings.Builder
		for r, x := range w.f.View().Ranks(w.gangs[id], Plan{Nodes: w.f.Work(id).Nodes}) {
			fmt.Fprintf(&b, "%d: %s %s\n", r, w.f.View().Tree().Nodes[x.Node], gpuList(x.GPUs))
		}
		return b.String()
	case "free":
		var b strings.Builder
		for _, i := range w.nodes("nodes") {
			n := w.f.View().Node(i)
			fmt.Fprintf(&b, "%s: %s", n.Name, gpuList(n.Free))
			for _, p := range n.Parts {
				fmt.Fprintf(&b, "; %s", partText(p))
			}
			b.WriteByte('\n')
		}
		return b.String()
	default:
		d.Fatalf(w.t, "no command %s", d.Cmd)
	}
	return "ok"
}

// place places the gang, and holds the plan to Fits, to a fleet rebuilt from the facts, and to a saved snapshot.
func (w *stage) place() string {
	g, err := w.gang()
	if err != nil {
		return err.Error()
	}
	s := w.f.Snapshot()
	p := Place(s, g)
	if w.d.Cmd == "replay" {
		back, err := Load(s.Save())
		if err != nil {
			return err.Error()
		}
		q, r := Place(back, g), Place(rebuilt(w.t, s).View(), g)
		return fmt.Sprintf("saved and loaded: the same %v\nrebuilt: the same %v", w.plan(p) == w.plan(q), w.plan(p) == w.plan(r))
	}
	if !p.OK() {
		if w.d.Cmd == "why" {
			return s.Why(g, p.Refused)
		}
		if p.Refused.Invalid != "" {
			return p.Refused.Invalid
		}
		var parts []string
		for r, n := range p.Refused.Counts {
			if n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, Reason(r)))
			}
		}
		return "refused: " + strings.Join(parts, ", ")
	}
	if err := Fits(s, g, p); err != nil {
		w.t.Errorf("%s: %v", w.d.Pos, err)
	}
	if !w.d.HasArg("dry") {
		if err := w.f.Start(&Running{ID: g.ID, Nodes: p.Nodes}); err != nil {
			w.t.Errorf("%s: %v", w.d.Pos, err)
		}
		w.gangs[g.ID] = g
	}
	if w.d.HasArg("policy") {
		return w.plan(p) + "\n" + p.Policy
	}
	return w.plan(p)
}

// plan is nodes with the GPUs taken of each, the same together, and where they hang.
func (w *stage) plan(p Plan) string {
	t := w.f.View().Tree()
	var groups []string
	by := map[string][]string{}
	leaves := map[string]bool{}
	for _, x := range p.Nodes {
		what := gpuList(x.GPUs)
		if x.Part.Kind != NoShare {
			what = partText(x.Part)
		}
		if by[what] == nil {
			groups = append(groups, what)
		}
		by[what] = append(by[what], t.Nodes[x.Node])
		leaves[t.Switches[t.Leaf[x.Node]].Name] = true
	}
	var out []string
	for _, what := range groups {
		out = append(out, hostlist.Compress(by[what])+" "+what)
	}
	names := []string{}
	for l := range leaves {
		names = append(names, l)
	}
	slices.Sort(names)
	return strings.Join(out, ", ") + " under " + hostlist.Compress(names)
}

func gpuList(mask uint32) string {
	var names []string
	for i := range 32 {
		if mask&(1<<i) != 0 {
			names = append(names, fmt.Sprint(i))
		}
	}
	switch s := hostlist.Compress(names); {
	case len(names) == 0:
		return "no GPU"
	case len(names) == 1:
		return "GPU " + s
	default:
		return "GPUs " + strings.Trim(s, "[]")
	}
}

func partText(p Part) string {
	s := fmt.Sprintf("%s of GPU %d", p.Kind, p.GPU)
	switch p.Kind {
	case MIG:
		return fmt.Sprintf("%s: slices %08b", s, p.Slots)
	case MPS:
		return fmt.Sprintf("%s: %d %%, %d GiB", s, p.Amount, p.Memory)
	}
	return fmt.Sprintf("%s: %d, %d GiB", s, p.Amount, p.Memory)
}

// gang reads a gang from the command's arguments.
func (w *stage) gang() (Gang, error) {
	g := Gang{ID: w.d.CmdArgs[0].Key, Nodes: 1}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			w.d.Fatalf(w.t, "%v", err)
		}
		return n
	}
	var par Parallel
	for _, a := range w.d.CmdArgs[1:] {
		v := strings.Join(a.Vals, ",")
		switch a.Key {
		case "nodes":
			g.Nodes = number(v)
		case "gpus":
			g.GPUs = number(v)
		case "whole":
			g.Whole = true
		case "ranks":
			g.Ranks = number(v)
		case "limit":
			g.Limit = w.duration("limit", 0)
		case "level":
			if err := g.Level.UnmarshalText([]byte(v)); err != nil {
				return g, err
			}
		case "age":
			g.MaxAge = w.duration("age", 0)
		case "remaining":
			g.MinRemaining = w.duration("remaining", 0)
		case "through":
			g.Through = true
		case "height":
			g.Near, g.Height = Required, number(v)
		case "anywhere":
			g.Near = Anywhere
		case "switches":
			n, wait, _ := strings.Cut(v, "@")
			g.Switches = number(n)
			g.SwitchWait, _ = time.ParseDuration(wait) // none: for ever
		case "waited":
			g.Waited = w.duration("waited", 0)
		case "segment":
			g.Segment = number(v)
		case "segment-height":
			g.SegmentHeight = number(v)
		case "group":
			g.Group = number(v)
		case "joined":
			g.Joined = number(v)
		case "per-leaf":
			g.PerLeaf = number(v)
		case "spread":
			g.Spread = true
		case "same-grade":
			g.SameGrade = true
		case "reserved":
			g.Reserved = v
		case "within":
			g.Within = append(g.Within, w.f.View().Set(w.nodes("within")...))
		case "except":
			g.Except = append(g.Except, w.f.View().Set(w.nodes("except")...))
		case "tp":
			par.TP = number(v)
		case "pp":
			par.PP = number(v)
		case "dp":
			par.DP = number(v)
		case "mps":
			g.Share = Share{Kind: MPS, Amount: number(v)}
		case "shard":
			g.Share = Share{Kind: Shard, Amount: number(v)}
		case "mig":
			g.Share = Share{Kind: MIG, Profile: v}
		case "memory":
			g.Share.Memory = number(v)
		case "dry", "policy", "ends":
		default:
			w.d.Fatalf(w.t, "no field %s", a.Key)
		}
	}
	if par.TP > 0 {
		shape := w.f.View().Node(0).Shape
		return par.Shape(g, shape.GPUs)
	}
	return g, nil
}
