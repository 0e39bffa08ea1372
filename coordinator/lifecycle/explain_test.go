package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/guard"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// The guard's view is the headroom that Step asks for, and a Spend is a charge in its books.
var (
	_ Headroom     = guard.View{}
	_ guard.Charge = guard.Charge(Spend{})
)

func certified() Node {
	return Node{Name: "gpu001", State: Certified, Since: noon, BootID: "b1", Deadline: noon.Add(12 * time.Hour),
		Certificate: &certificate.Certificate{Serial: 7, Level: checks.Quick, IssuedAt: noon, Expires: noon.Add(12 * time.Hour), GraceUntil: noon.Add(24 * time.Hour)}}
}

// TestReasonIsHarmless: a finding's text comes from a kernel log; nothing in it may mean anything to Slurm or a terminal.
func TestReasonIsHarmless(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"plain", "xid 79 GPU 3 fell off the bus", "assay:Q-7F3K xid 79 GPU 3 fell off the bus"},
		{"control characters", "a\x1b[31mb\nc\td\x00", "assay:Q-7F3K a [31mb c d"},
		{"quotes and separators", `it's "x" = y, z | $(rm)`, "assay:Q-7F3K it s x y; z (rm)"},
		{"not ASCII", "Temperatur 85 °C – heiß", "assay:Q-7F3K Temperatur 85 C hei"},
		{"not UTF-8", "a\xff\xfeb", "assay:Q-7F3K a b"},
		{"nothing left", "\n\n", "assay:Q-7F3K"},
		{"long", strings.Repeat("word ", 100), strings.TrimRight(("assay:Q-7F3K " + strings.Repeat("word ", 100))[:200], " ")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Reason(Node{Case: &Case{ID: "Q-7F3K"}, Reasons: []string{c.text}}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := Reason(certified()); got != "" {
		t.Errorf("a node without a case has reason %q", got)
	}
}

func TestHookSays(t *testing.T) {
	with := func(edit func(*Node)) Node {
		n := certified()
		edit(&n)
		return n
	}
	for _, c := range []struct {
		name, want string
		at         time.Time
		n          Node
	}{
		{"unknown here", "passes: assay does not manage", noon, Node{}},
		{"retired", "passes: assay does not manage", noon, with(func(n *Node) { n.State = Retired })},
		{"certified", "passes on certificate 7", noon, certified()},
		{"in grace", "passes on certificate 7", noon.Add(13 * time.Hour), certified()},
		{"grace over", "the quick suite decides; a pass", noon.Add(24 * time.Hour), certified()},
		{"suspended", "the quick suite decides; a pass", noon, with(func(n *Node) { n.Suspended = true })},
		{"overridden", "passes and is counted", noon, with(func(n *Node) { n.State = Quarantined; n.Marks = map[string]time.Time{MarkOverridden: noon.Add(1)} })},
		{"the override is over", "out of service", noon.Add(1), with(func(n *Node) { n.State = Quarantined; n.Marks = map[string]time.Time{MarkOverridden: noon.Add(1)} })},
		{"withheld", "asks for a permit", noon, with(func(n *Node) { n.State = Withheld })},
		{"draining", "out of service", noon, with(func(n *Node) { n.State = Draining })},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := HookSays(c.n, c.at); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestExplainNamesWhatDecides(t *testing.T) {
	n := certified()
	n.Lost, n.Suspended = true, true
	n.Holds = []Hold{{Owner: "alice", Reason: "cabling", Drain: true}, {Owner: "bob", Reason: "look"}}
	n.Marks = map[string]time.Time{MarkLapsed: {}, MarkAdopted: {}, MarkSuspicious: {}, MarkOverridden: noon.Add(-1)}
	n.Past = []PastCause{{Cause: "ecc", Part: "gpu/GPU-2"}}
	n.Case = &Case{ID: "Q-1", Cause: "ecc", Part: "gpu/GPU-2", Owner: Assay}
	why, next := Explain(n, noon)
	text := strings.Join(why, "\n")
	for _, want := range []string{"certified for case Q-1: ecc", "same part 1 times", "agent does not answer", "drained in Slurm by alice: cabling",
		"held by bob: look", "expired under a job", "adopted", "not reproduced", "Certificate 7 (quick) is suspended"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "resumed it against") {
		t.Errorf("an override that is over is told:\n%s", text)
	}
	if want := "(looked at again by 2026-11-30T00:00:00Z; owner assay)"; !strings.Contains(next, want) {
		t.Errorf("no %q in %q", want, next)
	}
	for at, want := range map[time.Time]string{noon: "holds until", noon.Add(13 * time.Hour): "hooks accept it until", noon.Add(24 * time.Hour): "expired at 2026-11-30T00:00:00Z."} {
		if why, _ := Explain(certified(), at); !strings.Contains(strings.Join(why, "\n"), want) {
			t.Errorf("at %s: no %q in %q", at, want, why)
		}
	}
	if why, next := Explain(Node{Name: "gpu009"}, noon); !strings.Contains(why[0], "not under assay's care") || !strings.Contains(next, "enroll gpu009") {
		t.Errorf("a stranger: %q %q", why, next)
	}
}

func TestDueIsTheFirstOfAll(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*Node)
		want time.Time
	}{
		{"the state's deadline", func(*Node) {}, noon.Add(12 * time.Hour)},
		{"a hold that ends before", func(n *Node) { n.Holds = []Hold{{Owner: "a"}, {Owner: "b", Expires: noon.Add(time.Hour)}} }, noon.Add(time.Hour)},
		{"a mark that ends before", func(n *Node) {
			n.Marks = map[string]time.Time{MarkOverridden: noon.Add(2 * time.Hour), MarkAdopted: {}}
		}, noon.Add(2 * time.Hour)},
		{"a drain to try again", func(n *Node) { n.RedrainAfter = noon.Add(time.Minute) }, noon.Add(time.Minute)},
		{"a resume to try again", func(n *Node) { n.DrainedByUs, n.ResumeAfter = true, noon.Add(time.Minute) }, noon.Add(time.Minute)},
		{"a hold that ends after", func(n *Node) { n.Holds = []Hold{{Owner: "b", Expires: noon.Add(48 * time.Hour)}} }, noon.Add(12 * time.Hour)},
		{"no deadline at all", func(n *Node) { n.Deadline = time.Time{} }, time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := certified()
			c.edit(&n)
			if got := Due(n); !got.Equal(c.want) {
				t.Errorf("due %s, want %s", got, c.want)
			}
		})
	}
}

func TestStands(t *testing.T) {
	drained := func(n *Node) { n.State, n.DrainedByUs, n.DrainReason = Draining, true, "r" }
	rung := func(r string) func(*Node) {
		return func(n *Node) { n.State, n.Case = Remediating, &Case{Rung: r} }
	}
	for _, c := range []struct {
		name string
		e    Effect
		yes  func(*Node) // it stands then
		no   func(*Node) // and not then
	}{
		{"drain", Effect{Kind: EffectDrain, Args: map[string]string{"reason": "older"}}, drained, func(*Node) {}},
		{"resume", Effect{Kind: EffectResume}, func(n *Node) { n.ResumePending = true }, drained},
		{"reason", Effect{Kind: EffectReason, Args: map[string]string{"reason": "r"}}, drained, func(n *Node) { drained(n); n.DrainReason = "newer" }},
		{"reset", Effect{Kind: EffectResetGPU}, rung(RungReset), rung(RungReboot)},
		{"reboot", Effect{Kind: EffectReboot}, rung(RungReboot), func(n *Node) { rung(RungReboot)(n); n.State = Screening }},
		{"power cycle", Effect{Kind: EffectPowerCycle}, rung(RungPowerCycle), func(*Node) {}},
		{"screen", Effect{Kind: EffectScreen}, func(n *Node) { n.Screen = "e1" }, func(n *Node) { n.Screen = "e2" }},
		{"evidence", Effect{Kind: EffectEvidence}, func(n *Node) { n.Case = &Case{Evidence: "collecting"} }, func(n *Node) { n.Case = &Case{Evidence: "partial"} }},
		{"kill", Effect{Kind: EffectKillJob, Args: map[string]string{"job": "7"}}, func(n *Node) { drained(n); n.Jobs = []JobRef{{ID: "7"}} }, drained},
		{"requeue", Effect{Kind: EffectRequeueJob, Args: map[string]string{"job": "7"}}, func(n *Node) { drained(n); n.Jobs = []JobRef{{ID: "7"}} },
			func(n *Node) { n.Jobs = []JobRef{{ID: "7"}} }},
		{"a run of a job", Effect{Kind: EffectKillJob, Args: map[string]string{"job": "7", "restarts": "1"}},
			func(n *Node) { drained(n); n.Jobs = []JobRef{{ID: "7", Restarts: 1}} }, func(n *Node) { drained(n); n.Jobs = []JobRef{{ID: "7", Restarts: 2}} }},
		{"a boot voids it", Effect{Kind: EffectReboot, BootID: "b1"}, rung(RungReboot), func(n *Node) { rung(RungReboot)(n); n.BootID = "b2" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := certified()
			c.yes(&n)
			if ok, why := Stands(n, c.e, "e1"); !ok {
				t.Errorf("does not stand: %s", why)
			}
			n = certified()
			c.no(&n)
			if ok, why := Stands(n, c.e, "e1"); ok || why == "" {
				t.Errorf("stands, or does not say why not: %v %q", ok, why)
			}
		})
	}
	if ok, _ := Stands(Node{}, Effect{Kind: EffectPage}, "e1"); !ok {
		t.Error("a page always goes out")
	}
}

// TestDamagedRecord: a state that needs a case and has none is refused, not guessed at; retiring it is the way out.
func TestDamagedRecord(t *testing.T) {
	for _, st := range []State{Suspect, Withheld, Draining, Quarantined, Remediating, RMA} {
		n := Node{Name: "gpu001", State: st, Deadline: noon}
		if _, _, _, err := Step(n, DeadlinePassed{At{noon}}, Inputs{}); err == nil || !strings.Contains(err.Error(), "its case is missing") {
			t.Errorf("%s: %v", st, err)
		}
		if after, _, _, err := Step(n, OrderRetire{At{noon}, "alice", "broken"}, Inputs{}); err != nil || after.State != Retired {
			t.Errorf("%s: retire: %s %v", st, after.State, err)
		}
	}
	_, _, _, err := Step(Node{Name: "gpu001", State: "limbo"}, ResetWanted{At: At{noon}}, newWorld().in)
	if err == nil || !strings.Contains(err.Error(), "no such state") {
		t.Errorf("limbo: %v", err)
	}
	_, _, _, err = Step(Node{Name: "gpu001"}, Silent{At{noon}}, Inputs{})
	illegal, ok := err.(*IllegalError)
	if !ok || illegal.Status() != 409 || illegal.Error() != "silent on gpu001, which is not enrolled: not under assay's care" {
		t.Errorf("a stranger: %v", err)
	}
}

// TestNoGuardIsNoRoom: a guard that was forgotten takes nothing.
func TestNoGuardIsNoRoom(t *testing.T) {
	w := newWorld()
	w.in.Guard = nil
	n := certified()
	n, _, es, err := Step(n, SoftFault{At: At{noon}, Finding: checks.Finding{Check: "ecc", Verdict: checks.Fail, Action: checks.Drain}}, w.in)
	if err != nil || n.State != Certified || !n.Marked(MarkHeldBack, noon) {
		t.Errorf("%s %v %v", n.State, n.Marks, err)
	}
	for _, e := range es {
		if e.Kind == EffectDrain {
			t.Errorf("drained: %v", e)
		}
	}
}
