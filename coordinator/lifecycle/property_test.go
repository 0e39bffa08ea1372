package lifecycle

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/certificate"
)

// A walk is one node through random events, with what must hold after each.
type walk struct {
	*world
	demanded checks.Level // level that the case of our drain demanded
	slurm    string       // who drained it in Slurm, by the effects and events so far: "", "us", or a person
}

// TestWalk plays random histories. Each check in it is a promise of the design.
func TestWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &walk{world: newWorld()}
		w.in.Slurm = rapid.IntRange(0, 4).Draw(t, "slurm") > 0
		if rapid.IntRange(0, 4).Draw(t, "observe") == 0 {
			w.in.Policy.Mode = policy.Observe
		}
		w.in.Policy.Lifecycle.DrainJob = rapid.SampledFrom([]string{"wait", "requeue", "kill"}).Draw(t, "drain job")
		w.node = Node{Name: "gpu001"}
		inv := checks.Inventory{Node: "gpu001", BootID: "b1", Driver: "550", NodeSerial: "H1", GPUs: []checks.GPU{{UUID: "GPU-a"}, {UUID: "GPU-b"}}}
		w.do(t, Enrol{At{w.now}, rapid.Bool().Draw(t, "adopt"), "s1", "alice"})
		w.do(t, Seen{At{w.now}, inv})
		if rapid.Bool().Draw(t, "certified") {
			w.do(t, Screened{At: At{w.now}, Level: checks.Intake, Verdict: checks.Pass, Inventory: inv})
		}
		events := anyEvent(func(t *rapid.T) time.Time {
			w.now = w.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 10 * time.Minute, time.Hour, 25 * time.Hour}).Draw(t, "later"))
			return w.now
		})
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.guard.say = rapid.SampledFrom([]string{"room", "room", "full", "frozen"}).Draw(t, "guard")
			ev := events.Draw(t, "event")
			if sc, ok := ev.(Screened); ok && sc.Screen == "this" {
				sc.Screen = w.node.Screen
				ev = sc
			}
			if ee, ok := ev.(EffectEnded); ok && ee.Kind == EffectScreen {
				ee.ID = w.node.Screen
				ev = ee
			}
			w.do(t, ev)
		}
	})
}

func (w *walk) do(t *rapid.T, ev Event) {
	before, frozen := w.node, mustJSON(t, w.node)
	ws, es, err := w.step(ev)
	if got := mustJSON(t, before); got != frozen {
		t.Fatalf("%s changed the node given to Step:\n%s\n%s", ev, frozen, got)
	}
	if err != nil {
		var illegal *IllegalError
		if !errors.As(err, &illegal) {
			t.Fatalf("%s: %v is no IllegalError", ev, err)
		}
		return
	}
	n := w.node
	changed := !reflect.DeepEqual(withVersion(n, 0), withVersion(before, 0)) || len(ws)+len(es) > 0
	if changed != (n.Version == before.Version+1) || !changed && n.Version != before.Version {
		t.Fatalf("%s: version %d -> %d, changed %v", ev, before.Version, n.Version, changed)
	}
	w.checkState(t, ev, before, ws, es)
	w.checkOwnership(t, ev, before, es)
	w.checkCapacity(t, ev, before, ws, es)
	w.checkTwice(t, ev)
}

func (w *walk) checkState(t *rapid.T, ev Event, before Node, ws []Write, es []Effect) {
	n := w.node
	if n.State != Retired && n.Deadline.IsZero() {
		t.Fatalf("%s: %s without a deadline", ev, n.State)
	}
	if n.State != Retired && Owner(n) == "" {
		t.Fatalf("%s: nobody owns the node", ev)
	}
	if n.Case != nil && (n.Case.Owner == "" || n.Case.ID == "" || n.Case.Next == "") {
		t.Fatalf("%s: case without owner, id or next: %+v", ev, n.Case)
	}
	if n.Case == nil && needsCase(n.State) {
		t.Fatalf("%s: %s without a case", ev, n.State)
	}
	switch n.State {
	case Withheld, Quarantined, Remediating, RMA, Retired:
		if n.Certificate != nil {
			t.Fatalf("%s: %s with a certificate", ev, n.State)
		}
	case Certified:
		if n.Certificate == nil {
			t.Fatalf("%s: certified without a certificate", ev)
		}
	}
	if n.Suspended && n.Certificate == nil {
		t.Fatalf("%s: nothing to suspend", ev)
	}
	if n.Case != nil && n.Case.Hard && n.Certificate != nil && n.State != Certified && n.State != Screening {
		t.Fatalf("%s: hard case in %s with a certificate", ev, n.State)
	}
	// A certificate goes with a write of its own, and comes with one.
	gone, came := false, false
	for _, x := range ws {
		switch x := x.(type) {
		case DeleteCertificate:
			gone = true
			if before.Certificate == nil || x.Serial != before.Certificate.Serial {
				t.Fatalf("%s: revoked %d, which was not held", ev, x.Serial)
			}
		case IssueCertificate:
			came = true
			if c := x.Certificate; c.BootID != n.BootID || !c.Expires.After(ev.When()) || c.Level == checks.NoLevel || len(c.GPUs) == 0 {
				t.Fatalf("%s: issued %+v", ev, c)
			}
		}
	}
	if had, has := before.Certificate != nil, n.Certificate != nil; had && !has != gone && !came || !had && has != came {
		t.Fatalf("%s: certificate %v -> %v with writes %v", ev, had, has, ws)
	}
	if (before.Case == nil) != (n.Case == nil) || before.Case != nil && before.Case.ID != n.Case.ID {
		ok := slices.ContainsFunc(ws, func(x Write) bool {
			switch x.(type) {
			case OpenCase, CloseCase:
				return true
			}
			return false
		})
		if !ok {
			t.Fatalf("%s: case came or went without a write", ev)
		}
	}
	for _, e := range es {
		if !slices.Contains(EffectKinds, e.Kind) || e.Node != n.Name {
			t.Fatalf("%s: effect %v", ev, e)
		}
		if (e.Kind == EffectReboot || e.Kind == EffectResetGPU) && (e.BootID != n.BootID || n.State != Remediating) {
			t.Fatalf("%s: %v in %s on boot %s", ev, e, n.State, n.BootID)
		}
	}
	if _, timer := ev.(DeadlinePassed); timer && n.State != Retired && !Due(n).After(ev.When()) {
		t.Fatalf("%s: due again at once, at %s", ev, Due(n))
	}
	if d := Due(n); !n.Deadline.IsZero() && d.After(n.Deadline) {
		t.Fatalf("%s: due %s, after the deadline %s", ev, d, n.Deadline)
	}
	if b := mustJSON(t, n); mustJSON(t, fromJSON(t, b)) != b {
		t.Fatalf("%s: the node does not survive JSON: %s", ev, b)
	}
}

// checkOwnership follows who drained the node in Slurm, by what was ordered and told, never by the node's own record.
func (w *walk) checkOwnership(t *rapid.T, ev Event, before Node, es []Effect) {
	n := w.node
	switch ev := ev.(type) {
	case SlurmDrained:
		if !ev.BySlurm {
			w.slurm = ev.User
		}
	case SlurmReason:
		if !ev.BySlurm {
			w.slurm = ev.User
		}
	case SlurmUndrained, SlurmResumed:
		if !before.DrainPending { // else the read is older than our order
			w.slurm = ""
		}
	}
	if n.Case != nil {
		w.demanded = n.Case.Level
	} else if before.Case != nil {
		w.demanded = before.Case.Level
	}
	for _, e := range es {
		switch e.Kind {
		case EffectDrain, EffectReason:
			w.slurm = "us"
		case EffectReboot:
			if w.in.Slurm && w.slurm != "us" {
				t.Fatalf("%s: rebooted under the drain of %q", ev, w.slurm)
			}
		case EffectResume:
			order, byOrder := ev.(OrderResume)
			byOrder = byOrder && order.AcceptRisk == RiskNoCertificate && e.Args["by"] != ""
			if w.slurm != "us" {
				t.Fatalf("%s: resumed what %q drained", ev, w.slurm)
			}
			if e.Args["reason"] == "" {
				t.Fatalf("%s: resume without the reason that must stand", ev)
			}
			if !byOrder && (n.Certificate == nil || !certificate.Meets(*n.Certificate, w.demanded, ev.When(), 0) || n.Suspended) {
				t.Fatalf("%s: resumed without a fresh %s certificate: %+v", ev, w.demanded, n.Certificate)
			}
			if !byOrder && (n.Lost || len(n.Holds) > 0) {
				t.Fatalf("%s: resumed while lost or held", ev)
			}
		}
	}
}

// checkCapacity: no automatic step takes capacity without room and without a charge.
func (w *walk) checkCapacity(t *rapid.T, ev Event, before Node, ws []Write, es []Effect) {
	n := w.node
	charged := slices.ContainsFunc(ws, func(x Write) bool { s, ok := x.(Spend); return ok && !s.Hard })
	hard, isHard := ev.(HardFault)
	_, order := ev.(OrderDrain)
	for _, e := range es {
		switch e.Kind {
		case EffectDrain:
			if w.guard.say != "room" && !order && !(isHard && hard.OwnGPU) {
				t.Fatalf("%s: drained with the guard %s", ev, w.guard.say)
			}
			if !charged && !order {
				t.Fatalf("%s: drained without a charge", ev)
			}
		case EffectKillJob, EffectRequeueJob:
			if w.guard.say != "room" || !charged {
				t.Fatalf("%s: took a job's node with the guard %s", ev, w.guard.say)
			}
		}
	}
	if n.Suspended && !before.Suspended && w.guard.say != "room" && !order && !n.DrainedByUs && len(n.Holds) == 0 {
		t.Fatalf("%s: suspended with the guard %s", ev, w.guard.say)
	}
	if w.in.Policy.Mode == policy.Observe {
		for _, e := range es {
			switch e.Kind {
			case EffectResetGPU, EffectReboot, EffectPowerCycle, EffectKillJob, EffectRequeueJob, EffectDrain:
				if n.Case == nil || n.Case.Cause != CauseOrder {
					t.Fatalf("%s: %v in observe mode", ev, e)
				}
			}
		}
		if _, isHard := ev.(HardFault); isHard && (n.State != before.State || n.Certificate == nil && before.Certificate != nil) {
			t.Fatalf("%s: %s -> %s in observe mode", ev, before.State, n.State)
		}
	}
}

// checkTwice: an event delivered twice changes nothing more.
func (w *walk) checkTwice(t *rapid.T, ev Event) {
	w.in.CaseID = "Q-twice"
	again, ws, es, err := Step(w.node, ev, w.in)
	if err != nil {
		return // refused: nothing changed
	}
	if len(ws)+len(es) > 0 || !reflect.DeepEqual(again, w.node) {
		t.Fatalf("%s a second time:\n%v\n%s", ev, Lines(ws, es), differ(t, w.node, again))
	}
}

// differ names the fields in which two nodes differ.
func differ(t *rapid.T, a, b Node) string {
	var x, y map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal([]byte(mustJSON(t, a)), &x), json.Unmarshal([]byte(mustJSON(t, b)), &y)); err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, k := range slices.Sorted(maps.Keys(x)) {
		if string(x[k]) != string(y[k]) {
			out += k + ": " + string(x[k]) + "\n   now " + string(y[k]) + "\n"
		}
	}
	for _, k := range slices.Sorted(maps.Keys(y)) {
		if _, ok := x[k]; !ok {
			out += k + ": nothing\n   now " + string(y[k]) + "\n"
		}
	}
	return out
}

func withVersion(n Node, v uint64) Node { n.Version = v; return n }

func mustJSON(t *rapid.T, n Node) string {
	b, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func fromJSON(t *rapid.T, b string) Node {
	var n Node
	if err := json.Unmarshal([]byte(b), &n); err != nil {
		t.Fatal(err)
	}
	return n
}
