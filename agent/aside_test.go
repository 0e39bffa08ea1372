package agent

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/dcgm"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// fakeAside finds what it is told to, with a finding of its own in screens.
type fakeAside struct {
	mu     sync.Mutex
	found  []checks.Finding
	screen []checks.Finding
	read   catalog.Beside
	busy   error
	looks  int
	node   string
}

func (f *fakeAside) Look(_ context.Context, _ policy.Policy, known checks.Inventory, screen checks.Level) ([]checks.Finding, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	f.node = known.Node
	if screen != checks.NoLevel {
		return append(append([]checks.Finding{}, f.found...), f.screen...), time.Minute
	}
	return f.found, 10 * time.Second
}

func (f *fakeAside) Readings() catalog.Beside {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read
}

func (f *fakeAside) Quiesce(context.Context) error { return f.busy }

func (f *fakeAside) finds(fs ...checks.Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found = fs
}

func asideFinding(v checks.Verdict, a checks.Action) checks.Finding {
	return checks.Finding{Check: "user/x", Subject: checks.Subject{Kind: checks.KindNode, Node: "n1"}, Verdict: v, Action: a, Reason: "the site says so", BootID: "boot-1"}
}

// told are the verdicts that reports since the last call gave for the aside's check.
func told(b *bench) string {
	var out []string
	for _, r := range b.out.take() {
		for _, f := range r.Findings {
			if f.Check == "user/x" {
				out = append(out, string(r.Why)+" "+f.Verdict.String())
			}
		}
	}
	return strings.Join(out, ", ")
}

func TestAnAsidesFaultIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		a := &fakeAside{}
		b.asides = []Aside{a}
		b.run()
		defer b.end()
		b.desire(b.desired(1, 5))
		b.wait(time.Minute)
		if got := told(b); got != "" || a.looks < 5 || a.node != "n1" {
			t.Errorf("told %q after %d looks as %q", got, a.looks, a.node)
		}
		a.finds(asideFinding(checks.Fail, checks.Drain))
		b.wait(time.Minute)
		if got := told(b); !strings.HasPrefix(got, "background fail") {
			t.Errorf("told %q", got)
		}
		// A soft fault: the prolog asks, and does not pass by the certificate.
		b.prolog()
		if n := b.outcomes()[FastPass]; n != 0 {
			t.Errorf("%d prologs passed by the certificate alone", n)
		}
		a.finds()
		b.wait(time.Minute)
		b.prolog()
		if n := b.outcomes()[FastPass]; n != 1 {
			t.Errorf("%d prologs passed by the certificate alone once the fault was gone, want 1", n)
		}
	})
}

// What an aside leaves open is told, and takes nothing from the suite.
func TestAnOpenAsideHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.asides = []Aside{&fakeAside{found: []checks.Finding{asideFinding(checks.Unknown, checks.None)}}}
		b.run()
		defer b.end()
		b.desire(b.desired(1, 5))
		b.wait(time.Minute)
		if got := told(b); !strings.HasPrefix(got, "background unknown") {
			t.Errorf("told %q", got)
		}
		b.prolog()
		if n := b.outcomes()[FastPass]; n != 1 {
			t.Errorf("%d prologs passed by the certificate alone, want 1", n)
		}
	})
}

// A screen asks the asides, and rests on what they say.
func TestAScreenAsksTheAsides(t *testing.T) {
	for v, want := range map[checks.Verdict]string{checks.Fail: "verdict fail", checks.Unknown: "verdict unknown", checks.Pass: "verdict pass"} {
		t.Run(v.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				action := checks.None
				if v == checks.Fail {
					action = checks.Drain
				}
				b.asides = []Aside{&fakeAside{screen: []checks.Finding{asideFinding(v, action)}}}
				b.run()
				defer b.end()
				d := b.desired(1, 5)
				d.Effects = []wire.Effect{{ID: "e1", Kind: lifecycle.EffectScreen, Args: map[string]string{"level": "standard"}, BootID: "boot-1"}}
				b.desire(d)
				b.wait(time.Second)
				if got := told(b); got != "screen "+v.String() {
					t.Errorf("told %q", got)
				}
				if r, err := b.agent.NextResult(t.Context()); err != nil || r.Detail != want {
					t.Errorf("%+v, %v, want %s", r, err, want)
				}
			})
		})
	}
}

func TestAResetWaitsForTheAsides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.asides = []Aside{&fakeAside{busy: errors.New("a diagnostic runs")}}
		b.run()
		defer b.end()
		d := b.desired(1, 5)
		d.Effects = []wire.Effect{{ID: "e1", Kind: lifecycle.EffectResetGPU, Args: map[string]string{"gpus": "GPU-a"}, BootID: "boot-1"}}
		b.desire(d)
		b.wait(time.Second)
		if r, err := b.agent.NextResult(t.Context()); err != nil || r.Outcome != outcomeFailed || !strings.Contains(r.Detail, "our own: a diagnostic runs") {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// What the last screen read is kept over a restart of the agent, and evidence holds it with what was read since.
func TestWhatAScreenReadIsEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exit := 226
		diag := &catalog.DiagRead{At: time.Now().UTC(), Level: 2, Output: `{"DCGM Diagnostic":{"runtime_error":"no"}}`, Exit: &exit}
		health := &catalog.HealthRead{At: time.Now().UTC(), Health: dcgm.Health{Stuck: "dcgmHealthCheck"}}
		b := newBench(t)
		b.asides = []Aside{&fakeAside{read: catalog.Beside{Health: health}}, &fakeAside{read: catalog.Beside{Diag: diag}}}
		b.run()
		d := b.desired(1, 5)
		d.Policy.DCGM.Health, d.Policy.DCGM.Screen = "standalone", 2
		d.Effects = []wire.Effect{b.effect("e1", lifecycle.EffectScreen, map[string]string{"level": "standard"})}
		b.desire(d)
		b.result()
		if got := ScreenReadings(b.dir, "boot-1"); got.Health != nil || !reflect.DeepEqual(got.Diag, diag) {
			t.Errorf("kept %+v", got)
		}
		if got := ScreenReadings(b.dir, "boot-2"); !got.Empty() {
			t.Errorf("of another boot: %+v", got)
		}
		b.asides[1] = &fakeAside{}
		b.restart()
		defer b.end()
		d.Version, d.Effects = 2, []wire.Effect{b.effect("e2", lifecycle.EffectEvidence, map[string]string{"case": "Q-1"})}
		b.desire(d)
		if r := b.result(); r.Refs["beside.json"] == "" || r.Refs["dcgmi-diag.txt"] == "" {
			t.Fatalf("%+v", r)
		}
		c, err := ReadCapture(filepath.Join(b.dir, "evidence", "Q-1"))
		if err != nil || !reflect.DeepEqual(c.Beside, catalog.Beside{Health: health, Diag: diag}) {
			t.Fatalf("%+v, %v", c.Beside, err)
		}
		found := showFindings(c.Judge(checks.Standard))
		if !strings.Contains(found, "dcgm_health") || !strings.Contains(found, "the diagnostic did not run: no") {
			t.Errorf("judged again:\n%s", found)
		}
	})
}
