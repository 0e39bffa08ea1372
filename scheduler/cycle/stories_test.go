package cycle

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/quota"
)

// The files under testdata tell what users of other schedulers complained of, and what happens here. Commands:
//
//	fleet leaves=N per=N [depth=N] [backfill=none|easy] [ahead=T]   nodes of 8 GPUs; lines: qos NAME …, account NAME …
//	submit ID nodes= gpus= limit= runs= qos= account= near=required switches=N@T count=N
//	plan|event [at=T]             one round, carried out
//	until T                       event rounds whenever something is due, a plan every five minutes
//	fail NODE | mend NODE | launchfail ID
//	reserve NAME NODES from= to=
//	window NAME NODES from= to= [every=T] [maint] [accounts=A]   a reservation of the queue's
//	why ID
//	cost                          of the last round
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var w *world
		var start int64
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			args := map[string]string{}
			var words []string
			for _, a := range d.CmdArgs {
				if len(a.Vals) == 0 {
					words = append(words, a.Key)
				} else {
					args[a.Key] = strings.Join(a.Vals, ",")
				}
			}
			if at, ok := args["at"]; ok {
				w.now = start + span(t, at)
			}
			switch d.Cmd {
			case "fleet":
				w = readFleet(t, args, d.Input)
				start = w.now
			case "submit":
				return w.submit(t, words[0], args)
			case "plan", "event":
				w.due(t)
				w.round(t, d.Cmd == "plan")
			case "until":
				w.until(t, start+span(t, words[0]), start)
			case "fail":
				w.fail(t, words[0])
			case "mend":
				n, _ := w.c.Fleet.View().Tree().Node(words[0])
				w.c.Fleet.Unbar(n)
			case "launchfail":
				id, _ := strconv.ParseInt(words[0], 10, 64)
				w.end(t, id, queue.Ending{State: queue.NodeFail, Launch: true, At: w.now})
			case "reserve":
				set, err := w.c.Fleet.View().Named(strings.Split(words[1], "+")...)
				if err != nil {
					return err.Error()
				}
				w.c.Fleet.Reserve(scheduler.Reservation{Name: words[0], Start: time.Unix(start+span(t, args["from"]), 0), End: time.Unix(start+span(t, args["to"]), 0), Nobody: true, Nodes: set})
			case "window":
				w.window(t, words, args, start)
			case "cost":
				return fmt.Sprintf("%d placements tried for %d jobs", w.c.Schedule().Spots, len(w.c.Queue.Pending()))
			case "why":
				id, _ := strconv.ParseInt(words[0], 10, 64)
				r := w.c.Explain(id)
				return string(r.Code) + ": " + r.Text
			default:
				d.Fatalf(t, "no command %s", d.Cmd)
			}
			return w.take()
		})
	})
}

func span(t *testing.T, s string) int64 {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return int64(d.Seconds())
}

func readFleet(t *testing.T, args map[string]string, input string) *world {
	leaves, _ := strconv.Atoi(args["leaves"])
	per, _ := strconv.Atoi(args["per"])
	cfg := queue.DefaultConfig(leaves*per, 8, 64)
	cfg.Weights = queue.Weights{QOS: 1000}
	specs := []quota.Spec{{Name: "all", Shares: 1, Nominal: quota.None(), Borrow: quota.None(), Lend: quota.None()}}
	for line := range strings.Lines(input) {
		f := strings.Fields(line)
		kv := map[string]string{}
		for _, w := range f[2:] {
			k, v, _ := strings.Cut(w, "=")
			kv[k] = v
		}
		number := func(k string) int64 { n, _ := strconv.ParseInt(kv[k], 10, 64); return n }
		switch f[0] {
		case "qos":
			q := queue.QOS{Name: f[1], UsageFactor: 1, Limits: queue.NoLimits(), Priority: int(number("priority")), Grace: number("grace"), ExemptTime: number("exempt")}
			if kv["preempts"] != "" {
				q.Preempts = strings.Split(kv["preempts"], ",")
			}
			if n := number("maxgpus"); n > 0 {
				q.Limits.MaxPerUser[quota.GPUs] = n
			}
			cfg.QOS = append(cfg.QOS, q)
		case "account":
			s := quota.Spec{Name: f[1], Shares: 1, Nominal: quota.None(), Borrow: quota.None(), Lend: quota.None()}
			if _, ok := kv["nominal"]; ok {
				s.Nominal[quota.GPUs] = number("nominal")
			}
			if _, ok := kv["borrow"]; ok {
				s.Borrow[quota.GPUs] = number("borrow")
			}
			specs = append(specs, s)
		default:
			t.Fatalf("no line %s", f[0])
		}
	}
	w := newWorld(t, leaves, per, cfg, specs)
	if depth, ok := args["depth"]; ok {
		w.c.Options.Depth, _ = strconv.Atoi(depth)
	}
	if ahead, ok := args["ahead"]; ok {
		w.c.Options.Window = span(t, ahead)
	}
	w.c.Options.Strict, w.c.Options.EASY = args["backfill"] == "none", args["backfill"] == "easy"
	return w
}

func (w *world) submit(t *testing.T, word string, args map[string]string) string {
	id, _ := strconv.ParseInt(word, 10, 64)
	count := 1
	j := queue.Job{ID: id, Account: "all", Partition: "batch", QOS: "normal", Nodes: 1, GPUsPerNode: 8, Limit: 3600, Requeue: true}
	for k, v := range args {
		n, _ := strconv.Atoi(v)
		switch k {
		case "nodes":
			j.Nodes = n
		case "gpus":
			j.GPUsPerNode = n
		case "limit":
			j.Limit = span(t, v)
		case "runs":
			w.run[id] = span(t, v)
		case "qos":
			j.QOS = v
		case "account":
			j.Account = v
		case "near":
			w.likes[id] = func(g *scheduler.Gang) { g.Near = scheduler.Required }
		case "switches":
			count, wait, _ := strings.Cut(v, "@")
			at, insists := w.now, span(t, wait)
			w.likes[id] = func(g *scheduler.Gang) {
				g.Switches, _ = strconv.Atoi(count)
				g.SwitchWait, g.Waited = time.Duration(insists)*time.Second, time.Duration(w.now-at)*time.Second
			}
		case "reservation":
			j.Reservation = v
		case "count":
			count = n
		case "at":
		default:
			t.Fatalf("no field %s", k)
		}
	}
	for i := range int64(count) {
		one := j
		one.ID += i
		if err := w.c.Queue.Submit(one, w.now); err != nil {
			return err.Error()
		}
	}
	return ""
}

func (w *world) window(t *testing.T, words []string, args map[string]string, start int64) {
	r := queue.Reservation{Name: words[0], Start: start + span(t, args["from"]), End: start + span(t, args["to"]), Maint: len(words) > 2}
	for _, name := range strings.Split(words[1], "+") {
		n, ok := w.c.Fleet.View().Tree().Node(name)
		if !ok {
			t.Fatalf("no node %s", name)
		}
		r.Nodes = append(r.Nodes, n)
	}
	if args["every"] != "" {
		r.Repeat = span(t, args["every"])
	}
	if args["accounts"] != "" {
		r.Accounts = strings.Split(args["accounts"], ",")
	}
	w.c.Queue.SetReservations(append(w.c.Queue.Reservations(), r))
}

// until goes from event to event.
func (w *world) until(t *testing.T, end, start int64) {
	plan := w.now + 300
	for w.now < end {
		next := min(end, plan)
		for _, id := range w.c.Queue.Running() {
			j := w.c.Queue.Job(id)
			at := j.Start + w.c.Queue.Limit(j)
			if r, ok := w.run[id]; ok {
				at = j.Start + r
			}
			if by, ok := w.ends[id]; ok {
				at = min(at, by)
			}
			next = min(next, at)
		}
		if at, ok := w.c.Wake(w.now); ok && at > w.now {
			next = min(next, at)
		}
		w.now = max(w.now+1, next)
		said := len(w.said)
		w.due(t)
		w.round(t, w.now >= plan)
		if w.now >= plan {
			plan = w.now + 300
		}
		for i := said; i < len(w.said); i++ {
			w.said[i] = fmt.Sprintf("%s: %s", time.Duration(w.now-start)*time.Second, w.said[i])
		}
	}
}

func (w *world) fail(t *testing.T, name string) {
	n, ok := w.c.Fleet.View().Tree().Node(name)
	if !ok {
		t.Fatalf("no node %s", name)
	}
	w.c.Fleet.Bar(n, scheduler.Bar{Why: "quarantined"})
	for r := range w.c.Fleet.Snapshot().Running() {
		for _, take := range r.Nodes {
			if take.Node == n {
				id, _ := strconv.ParseInt(r.ID, 10, 64)
				w.end(t, id, queue.Ending{State: queue.NodeFail, Node: name, At: w.now})
				break
			}
		}
	}
}
