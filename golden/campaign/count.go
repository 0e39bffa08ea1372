package campaign

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

// States that the device is in: when the suite begins, at its end, and in a job.
var (
	cold = ptxvm.Env{TempC: 45, MHz: 1980, Util: 0.7}
	hot  = ptxvm.Env{TempC: 75, MHz: 1755, Util: 1, AgeS: 12}
	busy = ptxvm.Env{TempC: 75, MHz: 1755, Util: 1, AgeS: 3600}
)

// passes are the states in which the suite runs: once, or cold and hot when the fault asks for a state.
func passes(f ptxvm.Fault) []ptxvm.Env {
	w := &f.When
	if len(w.TempC)+len(w.MHz) == 0 && w.MinUtil == 0 && w.AfterS == 0 {
		return []ptxvm.Env{{TempC: 60, MHz: 1980, Util: 1}}
	}
	return []ptxvm.Env{cold, hot}
}

// prepare runs the workloads on a device without a fault.
func (r *Runner) prepare() error {
	var err error
	if r.jobs, err = loadWorkloads(r.o.SMs); err != nil {
		return err
	}
	for _, w := range r.jobs {
		d := ptxvm.NewDevice(ptxvm.Config{SMs: r.o.SMs, Capability: r.o.Capability, SharedSM: 16 << 10})
		out, err := w.run(d, r.o.SMs, workloadSteps)
		if err != nil {
			return fmt.Errorf("workload %s: %w", w.name, err)
		}
		r.clean = append(r.clean, out)
	}
	if !r.o.Others {
		return nil
	}
	more, err := loadPrograms([]string{"dcgm_memory"}, r.o.SMs)
	if err != nil {
		return err
	}
	r.memory = more[0]
	d := r.device(ptxvm.Fault{})
	begun := d.Now()
	for i, id := range r.o.Kernels {
		k, _ := kernels.Lookup(id)
		if k.MinCC > r.o.Capability {
			continue
		}
		if _, err := r.launch(d, k, uint32(i+1), r.o.Size.Steps(k)); err != nil {
			return err
		}
	}
	r.takes = d.Now() - begun
	return nil
}

// count says whether the fault corrupts a workload. One that neither the suite nor a workload sees is benign; one that only
// makes a workload end in an error is seen by whoever runs it.
func (r *Runner) count(f ptxvm.Fault, l *Line) error {
	due := ""
	for i, w := range r.jobs {
		d := r.device(f)
		if env := passes(f); len(env) > 1 {
			d.SetEnv(busy)
		}
		out, err := w.run(d, r.o.SMs, workloadSteps)
		var trap *ptxvm.Trap
		switch {
		case errors.As(err, &trap):
			due = w.name + ": " + trap.Kind
			continue
		case err != nil:
			return err
		}
		l.Hits = max(l.Hits, d.Hits()[f.ID])
		if !bytes.Equal(out, r.clean[i]) {
			l.Workload = w.name
			break
		}
	}
	switch {
	case l.Outcome != "":
	case l.Workload != "":
		l.Outcome = Missed
	case due != "":
		l.Outcome, l.Err = DUE, due
	default:
		l.Outcome = Idle
	}
	return nil
}

// each asks every kernel by itself.
func (r *Runner) each(f ptxvm.Fault, l *Line) error {
	env := passes(f)
	for i, id := range r.o.Kernels {
		k, _ := kernels.Lookup(id)
		if k.Skip(r.o.Capability) != "" {
			continue
		}
		d := r.device(f)
		one := Line{}
		for _, e := range env {
			d.SetEnv(e)
			if err := r.stage(d, f, k, uint32(i+1), &one); err != nil {
				return err
			}
			if one.Outcome == Detected {
				l.Shown = append(l.Shown, id)
				break
			}
		}
	}
	return nil
}

// Lost gives for each kernel the faults that the suite no longer shows without it: those that count, and that no other kernel
// shows. It needs lines made with Options.Each.
func Lost(lines []Line) map[string]int {
	out := map[string]int{}
	for _, l := range lines {
		if l.Workload != "" && len(l.Shown) == 1 {
			out[l.Shown[0]]++
		}
	}
	return out
}
