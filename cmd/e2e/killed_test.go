package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/slurm"
)

// killsARun is how many moments one run dies at, one after the other.
const killsARun = 7

// (e) assayd is killed with -9 at every moment that an unkilled run of the same plot goes through: around every record and
// tick of each kind of effect, around carrying it out, and around every call of scontrol and scancel. Each time it ends the
// same way, and slurmctld was told the same things in the same order, repeats aside.
//
// All kinds of effect and all verbs are reached here. The agents carry out screen, evidence and reset_gpu, so that their
// moments are those around their record and their tick.
func TestKilledAtEveryMoment(t *testing.T) {
	p := newPlot(t)
	p.begin()
	log := filepath.Join(p.dir, "moments")
	if err := p.StartControl(p.ctx(), "assayd", nil, []string{"ASSAY_KILLPOINT_LOG=" + log}); err != nil {
		t.Fatal(err)
	}
	want := p.play()
	moments := distinct(t, log)
	covered(t, moments)

	// Neighbours die in different runs: what follows a death at once is often done already when the process is back.
	runs := make([][]string, (len(moments)+killsARun-1)/killsARun)
	for i, m := range moments {
		runs[i%len(runs)] = append(runs[i%len(runs)], m)
	}
	t.Logf("%d moments in %d runs", len(moments), len(runs))
	var missed []string
	for i, run := range runs {
		missed = append(missed, p.killed(t, fmt.Sprint("run ", i+1), run, want)...)
	}
	for _, m := range missed { // an earlier death in its run has kept it from coming
		if again := p.killed(t, m+" alone", []string{m}, want); len(again) > 0 {
			t.Errorf("%s never came again", m)
		}
	}
}

// distinct are the moments in a log, in the order of their first coming.
func distinct(t *testing.T, log string) []string {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if m := strings.TrimSpace(line); !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// covered wants moments for every kind of effect and every verb.
func covered(t *testing.T, moments []string) {
	t.Helper()
	var want []string
	for _, kind := range lifecycle.EffectKinds {
		for _, step := range []string{"record", "tick"} {
			want = append(want, step+"/"+kind+"/before", step+"/"+kind+"/after")
		}
		switch kind {
		case lifecycle.EffectScreen, lifecycle.EffectEvidence, lifecycle.EffectResetGPU: // the agent's
		default:
			want = append(want, kind+"/before", kind+"/done")
		}
	}
	for _, verb := range slurm.Verbs {
		want = append(want, "slurm/"+verb+"/before", "slurm/"+verb+"/after")
	}
	for _, m := range want {
		if !slices.Contains(moments, m) {
			t.Errorf("no kill point %s: the plot must come to it", m)
		}
	}
}

// killed plays the plot once more with an assayd that dies at each of the moments, and says which did not come.
func (p *plot) killed(t *testing.T, name string, moments []string, want outcome) (missed []string) {
	t.Run(name, func(t *testing.T) {
		began := time.Now()
		sub, s := *p, *p.site
		s.t, s.cluster, sub.site = t, p.cluster.With(t), &s
		sub.begin()
		k := &killer{plot: &sub, left: slices.Clone(moments), log: filepath.Join(t.TempDir(), "log")}
		stop := k.run()
		defer stop() // a run that has failed leaves no supervisor
		got := sub.play()
		missed = stop()
		t.Logf("%d deaths in %v", len(moments)-len(missed), time.Since(began).Round(time.Second))
		if !reflect.DeepEqual(got, want) {
			a, _ := json.MarshalIndent(got, "", " ")
			b, _ := json.MarshalIndent(want, "", " ")
			t.Errorf("killed at %v it ends as\n%s\nunkilled as\n%s", moments, a, b)
		}
	})
	return missed
}

// A killer runs assayd and is the supervisor that starts it again each time it has died, to die at what is left.
type killer struct {
	*plot
	left []string
	log  string
}

// run starts it all; the function returned ends it, and says which moments have not come.
func (k *killer) run() func() []string {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			err := k.StartControl(ctx, "assayd", nil, []string{"ASSAY_KILLPOINT=" + strings.Join(k.left, ","), "ASSAY_KILLPOINT_LOG=" + k.log})
			proc := k.Control("assayd")
			if proc == nil {
				k.t.Errorf("assayd not started: %v", err)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-proc.Done():
			}
			if !k.died() {
				k.t.Errorf("assayd ended by itself: %v", err)
				return
			}
		}
	}()
	return func() []string {
		cancel()
		<-done
		return slices.Clone(k.left)
	}
}

// died strikes off the moment that the process has died at, the last in its log.
func (k *killer) died() bool {
	b, err := os.ReadFile(k.log)
	if err != nil {
		return false
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	at, ok := strings.CutPrefix(lines[len(lines)-1], "killed ")
	i := slices.Index(k.left, at)
	if !ok || i < 0 {
		return false
	}
	k.left = slices.Delete(k.left, i, i+1)
	return true
}
