package lifecycle

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// The stories in testdata are the rows of the design's table, each as events on one node. Commands:
//
//	policy            lines "key=value" over the built-in policy in act mode; slurm=no turns Slurm off
//	guard             "room", "full" or "frozen": what the guard answers from here on
//	node NAME         a fresh node of eight GPUs; "state=certified" brings it there by events, "adopt" enrols so
//	event             one event a line in the text form; at=+5m is after the last event's time
//	show              the node's fields that are set
//	explain           what assay node explain says
//	reason            the reason for Slurm
//
// The answer to an event is "from -> to", then the writes and effects, one a line. An event without news answers
// "no change".
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return w.run(t, d)
		})
	})
}

// TestEveryRowHasAStory keeps the list of rows and the story files together.
func TestEveryRowHasAStory(t *testing.T) {
	rows, err := os.ReadFile("testdata/rows")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(rows)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		file, row, _ := strings.Cut(line, ": ")
		story, err := os.ReadFile(filepath.Join("testdata/stories", file))
		if err != nil {
			t.Errorf("row %q: %v", row, err)
			continue
		}
		if !strings.Contains(string(story), "# Row: "+row+"\n") {
			t.Errorf("story %s has no line %q", file, "# Row: "+row)
		}
	}
}

// A world is one node with its policy, guard and clock.
type world struct {
	in     Inputs
	guard  *fakeGuard
	node   Node
	now    time.Time
	cases  int
	serial uint64
	effect int
}

type fakeGuard struct{ say string }

func (g *fakeGuard) Room(_, _, _, _ string, _ time.Time) (bool, string) {
	if g.say == "room" {
		return true, ""
	}
	return false, map[string]string{"full": "fleet hour: 1 of 1 used", "frozen": "guard frozen by alice"}[g.say]
}

func newWorld() *world {
	g := &fakeGuard{say: "room"}
	p := policy.Default()
	p.Mode = policy.Act
	return &world{guard: g, in: Inputs{Policy: p, Guard: g, Slurm: true}, now: time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC)}
}

// step applies ev as the coordinator does: it numbers certificates and screens.
func (w *world) step(ev Event) ([]Write, []Effect, error) {
	w.in.CaseID = fmt.Sprintf("Q-%04d", w.cases+1)
	after, ws, es, err := Step(w.node, ev, w.in)
	if err != nil {
		return nil, nil, err
	}
	for _, x := range ws {
		switch x := x.(type) {
		case OpenCase:
			w.cases++
		case IssueCertificate:
			w.serial++
			c := x.Certificate
			c.Serial = w.serial
			if after.Certificate != nil && after.Certificate.Serial == 0 {
				after = Granted(after, c)
			}
		}
	}
	for _, e := range es {
		w.effect++
		after = Recorded(after, e, "e"+strconv.Itoa(w.effect))
	}
	w.node = after
	return ws, es, nil
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "policy":
		return w.setPolicy(t, d.Input)
	case "guard":
		w.guard.say = strings.TrimSpace(d.Input)
		return "ok\n"
	case "node":
		return w.start(t, d)
	case "event":
		var b strings.Builder
		for line := range strings.Lines(d.Input) {
			if line = strings.TrimSpace(line); line != "" {
				b.WriteString(w.event(t, line))
			}
		}
		return b.String()
	case "show":
		return show(t, w.node)
	case "reason":
		return Reason(w.node) + "\n"
	case "explain":
		why, next := Explain(w.node, w.now)
		return strings.Join(why, "\n") + "\nNext: " + next + "\nHook: " + HookSays(w.node, w.now) + "\n"
	}
	t.Fatalf("%s: no such command", d.Cmd)
	return ""
}

func (w *world) setPolicy(t *testing.T, input string) string {
	l := &w.in.Policy.Lifecycle
	for f := range strings.FieldsSeq(input) {
		k, v, _ := strings.Cut(f, "=")
		switch {
		case k == "mode":
			w.in.Policy.Mode = policy.Mode(v)
		case strings.HasPrefix(k, "checks."):
			if w.in.Policy.Checks == nil {
				w.in.Policy.Checks = map[string]policy.Check{}
			}
			w.in.Policy.Checks[strings.TrimPrefix(k, "checks.")] = policy.Check{Mode: policy.Mode(v)}
		case k == "slurm":
			w.in.Slurm = v == "yes"
		case k == "auto_rma":
			l.AutoRMA = v == "yes"
		case k == "drain_job":
			l.DrainJob = v
		case k == "drain_gang":
			l.DrainGang = v
		default:
			t.Fatalf("policy %s: no such key", k)
		}
	}
	return "ok\n"
}

// start makes a node and brings it to a state by the events that lead there.
func (w *world) start(t *testing.T, d *datadriven.TestData) string {
	name := d.CmdArgs[0].Key
	fresh := newWorld()
	fresh.in, fresh.guard = w.in, w.guard
	*w = *fresh
	w.node = Node{Name: name}
	state, adopt := "enrolled", d.HasArg("adopt")
	d.MaybeScanArgs(t, "state", &state)
	lead := []string{"enrol leaf=s1 by=alice", "seen " + hardware("b1", 8)}
	if adopt {
		lead[0] += " adopt=yes"
	}
	if state != "enrolled" {
		lead = append(lead, "screened why=screen level=intake verdict=pass tested=inventory tested=xid "+hardware("b1", 8))
	}
	fault := "hard_fault check=xid code=79 kind=gpu gpu=3 uuid=GPU-3 action=reboot reason=\"fell off the bus\""
	more := map[string][]string{
		"suspect":     {"soft_fault check=ecc kind=gpu gpu=2 uuid=GPU-2 action=reset_gpu reason=\"51 uncorrected errors\""},
		"draining":    {"jobs_changed job=(id=7 nodes=1)", fault, "effect_ended kind=drain outcome=done"},
		"quarantined": {fault, "effect_ended kind=drain outcome=done"},
		"remediating": {fault, "effect_ended kind=drain outcome=done", "effect_ended kind=evidence outcome=done"},
		"screening":   {fault, "effect_ended kind=drain outcome=done", "effect_ended kind=evidence outcome=done", "seen " + hardware("b2", 8)},
	}
	for _, line := range append(lead, more[state]...) {
		if out := w.event(t, line); strings.HasPrefix(out, "error") {
			t.Fatalf("%s: %s: %s", name, line, out)
		}
	}
	if string(w.node.State) != state {
		t.Fatalf("node %s: is %s, want %s", name, w.node.State, state)
	}
	return string(w.node.State) + "\n"
}

func hardware(boot string, gpus int) string {
	s := "node=gpu001 boot=" + boot + " host_serial=H1 driver=550.54.15"
	for i := range gpus {
		s += fmt.Sprintf(" gpu=(index=%d uuid=GPU-%d pci=0000:%02x:00.0)", i, i, 0x1b+i)
	}
	return s
}

// event applies one line. "hardware=b2" and "hardware=b2/7" stand for boot b2 with eight or seven GPUs.
func (w *world) event(t *testing.T, line string) string {
	var words []string
	for _, f := range strings.Split(line, " ") {
		switch {
		case strings.HasPrefix(f, "hardware="):
			boot, n, _ := strings.Cut(strings.TrimPrefix(f, "hardware="), "/")
			gpus := 8
			if n != "" {
				gpus, _ = strconv.Atoi(n)
			}
			f = hardware(boot, gpus)
		case strings.HasPrefix(f, "at=+"):
			later, err := time.ParseDuration(strings.TrimPrefix(f, "at=+"))
			if err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(later)
			f = ""
		case strings.HasPrefix(f, "until=+"), f == "screen=this":
			if k, v, _ := strings.Cut(f, "=+"); k == "until" {
				later, err := time.ParseDuration(v)
				if err != nil {
					t.Fatal(err)
				}
				f = "until=" + w.now.Add(later).Format(time.RFC3339)
			} else {
				f = "screen=" + w.node.Screen
			}
		}
		if f != "" {
			words = append(words, f)
		}
	}
	if !strings.Contains(line, " at=2") {
		words = append(words[:1:1], append([]string{"at=" + w.now.Format(time.RFC3339)}, words[1:]...)...)
	}
	ev, err := ParseEvent(strings.Join(words, " "))
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	w.now = ev.When()
	from := w.node
	ws, es, err := w.step(ev)
	if err != nil {
		hint := ""
		if h, ok := err.(interface{ Hint() string }); ok && h.Hint() != "" {
			hint = "; " + h.Hint()
		}
		return "error: " + err.Error() + hint + "\n"
	}
	if w.node.Version == from.Version {
		return "no change\n"
	}
	st := string(from.State)
	if st == "" {
		st = "new"
	}
	out := st + " -> " + string(w.node.State) + "\n"
	for _, l := range Lines(ws, es) {
		out += "  " + l + "\n"
	}
	return out
}

// show prints the node's JSON, one field a line, without the hardware lists.
func show(t *testing.T, n Node) string {
	n.Inventory, n.Expected = checks.Inventory{}, checks.Inventory{}
	b, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, k := range []string{"state", "marks", "holds", "lost", "reasons", "suspended", "case", "deadline", "want", "screen",
		"drained_by_us", "drain_reason", "drain_pending", "redrain_after", "resume_pending", "foreign_resumes", "past", "reboots"} {
		if v, ok := fields[k]; ok {
			fmt.Fprintf(&out, "%s: %s\n", k, v)
		}
	}
	if c := n.Certificate; c != nil {
		fmt.Fprintf(&out, "certificate: serial %d level %s expires %s\n", c.Serial, c.Level, c.Expires.Format(time.RFC3339))
	}
	fmt.Fprintf(&out, "owner: %s\n", Owner(n))
	return out.String()
}
