// Package golden runs golden kernels for the agent, in children that can be killed: for screens, prologs, epilogs and idle
// nodes, as policy asks for.
package golden

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/sdc"
	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/worker"
)

// A Runner runs suites, one at a time, and keeps what they found.
type Runner struct {
	child   []string // the command line of a child, its flags aside
	library string

	read  atomic.Pointer[catalog.Beside] // what was read last; never changed in place
	alive atomic.Int64                   // children that have not ended

	mu   sync.Mutex // held while a suite runs
	boot string     // in which it was read

	cur  sync.Mutex
	stop context.CancelCauseFunc // of the run under way
	held map[string]bool         // GPUs whose child lived on after SIGKILL: left alone until the next boot
}

// New makes a runner. child is the command line that runs worker.Child; library is the CUDA driver's.
func New(child []string, library string) *Runner {
	r := &Runner{child: child, library: library, held: map[string]bool{}}
	r.read.Store(&catalog.Beside{})
	return r
}

// Times of a child that was told to stop: rule 20 of the golden rules. To kill it in the middle of a kernel may leave the GPU
// wedged, so that comes last.
const (
	term   = time.Second
	kill   = 10 * time.Second
	killed = time.Minute
)

// silence is how long a child may say nothing: the driver's start and one kernel. A soak that hangs is not waited for an hour.
const silence = time.Minute

// again is when a background look is next due: none runs kernels, so it only tells what was found.
const again = time.Minute

// Look runs the suite of a screen, where policy has screens run one, and gives what the last runs found.
func (r *Runner) Look(ctx context.Context, p policy.Policy, known checks.Inventory, screen checks.Level) ([]checks.Finding, time.Duration) {
	// A soak is what lets a GPU back in that computed wrong numbers: without golden kernels it would prove nothing.
	wanted := p.Golden.Screen && screen != checks.NoLevel || p.Golden.Runs() && screen >= checks.Soak
	if wanted && p.ModeOf(sdc.ID) != policy.Off {
		ask := suite(screen, p.Golden)
		ask.GPUs, ask.Seed = once(known.GPUs), -1
		r.Test(ctx, p, known.BootID, ask)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(p, known.BootID)
	return catalog.JudgeBeside(*r.read.Load(), screen, known, p), again
}

// forget drops what was read in another boot, or what policy has none read of any more. The caller holds mu.
func (r *Runner) forget(p policy.Policy, boot string) {
	if !p.Golden.Runs() || p.ModeOf(sdc.ID) == policy.Off || r.boot != boot {
		r.read.Store(&catalog.Beside{})
		r.boot = boot
	}
}

// suite is what a screen of a level runs. A long one takes what it takes: its effect's deadline ends it.
func suite(level checks.Level, g policy.Golden) catalog.GoldenAsk {
	name := sdc.SuiteOf(level)
	switch level {
	case checks.Soak:
		return catalog.GoldenAsk{Suite: name, Corpora: g.Corpora, For: g.SoakFor.D(), Within: max(2*time.Hour, 2*g.SoakFor.D())}
	case checks.Intake:
		return catalog.GoldenAsk{Suite: name, Corpora: g.Corpora, Within: 4 * time.Hour}
	}
	return catalog.GoldenAsk{Suite: name, Corpora: g.Corpora, Within: g.Within.D()}
}

// once leaves out GPUs that were named before: the hardware that is known is what was accepted and what was seen.
func once(gpus []checks.GPU) []checks.GPU {
	var out []checks.GPU
	seen := map[string]bool{}
	for _, g := range gpus {
		if !seen[g.UUID] {
			out = append(out, g)
		}
		seen[g.UUID] = true
	}
	return out
}

// Readings is what was read last. It does not wait for a run.
func (r *Runner) Readings() catalog.Beside { return *r.read.Load() }

// Alive is how many children have not ended yet.
func (r *Runner) Alive() int { return int(r.alive.Load()) }

// Interrupt tells the run under way, if there is one, to stop: somebody needs the GPUs.
func (r *Runner) Interrupt(why error) {
	r.cur.Lock()
	defer r.cur.Unlock()
	if r.stop != nil {
		r.stop(why)
	}
}

// Quiesce stops what runs and returns once no child does.
func (r *Runner) Quiesce(ctx context.Context) error {
	for r.Interrupt(errors.New("the GPUs are needed")); r.Alive() > 0; {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("a golden run: %w", context.Cause(ctx))
		}
	}
	return nil
}

// Test runs a suite on GPUs, side by side, and gives what each said. A GPU that CUDA does not show stays unread.
func (r *Runner) Test(ctx context.Context, p policy.Policy, boot string, ask catalog.GoldenAsk) catalog.GoldenRead {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cur.Lock()
	r.stop = cancel
	r.cur.Unlock()
	defer func() {
		r.cur.Lock()
		defer r.cur.Unlock()
		r.stop = nil
	}()
	r.forget(p, boot)
	read := catalog.GoldenRead{GPUs: ask.GPUs, Results: r.run(ctx, p.Golden, ask)}
	read.At = time.Now()
	r.keep(read, ask, p.Golden)
	return read
}

// run has each GPU run the suite.
func (r *Runner) run(ctx context.Context, g policy.Golden, ask catalog.GoldenAsk) map[string]sdc.Reading {
	out := map[string]sdc.Reading{}
	var gpus []string
	for _, gpu := range ask.GPUs {
		if r.isHeld(gpu.UUID) {
			out[gpu.UUID] = sdc.Reading{Stuck: true, Err: "not asked any more until the next boot: a golden child lives on after SIGKILL"}
			continue
		}
		gpus = append(gpus, gpu.UUID)
	}
	r.alive.Add(int64(len(gpus)))
	var others []string
	if s, err := golden.LookupSuite(ask.Suite); err == nil && (worker.Options{Suite: s, Kernels: ask.Kernels}).Links() {
		others = gpus
	}
	own := ofTheDay(ask.Corpora, time.Now())
	w := worker.Parent{
		Command: append(r.command(g, ask), own.args()...), Others: others, Stage: min(ask.Within, silence), Total: max(ask.Within, ask.For+ask.For/4), Term: term, Kill: kill, Killed: killed, Leave: ask.Leave,
		Ended: func(gpu string, err error) {
			if err != nil {
				r.hold(gpu)
			}
			r.alive.Add(-1)
		},
	}
	results, err := w.Run(ctx, gpus)
	for i, res := range results {
		own.note(&res)
		reading := sdc.Reading{Have: checks.Read, Result: res}
		if len(res.Stages) == 0 {
			reading = sdc.Reading{Err: res.Err}
			if strings.HasPrefix(res.Err, "load ") {
				reading.Have = checks.NotSupported
			}
		}
		if why := outlived(err, gpus[i]); why != nil {
			reading.Result.Err = why.Error()
			if len(res.Stages) == 0 {
				reading.Err = why.Error()
			}
		}
		if r.isHeld(gpus[i]) {
			reading = sdc.Reading{Stuck: true, Err: "a golden child lives on after SIGKILL: it hangs in the driver"}
		}
		out[gpus[i]] = reading
	}
	return out
}

// outlived is the error of a child that had not ended when its run was left.
func outlived(err error, gpu string) error {
	var all []error
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		all = j.Unwrap()
	}
	for _, e := range all {
		var alive *worker.AliveError
		if errors.As(e, &alive) && alive.GPU == gpu {
			return alive
		}
	}
	return nil
}

func (r *Runner) command(g policy.Golden, ask catalog.GoldenAsk) []string {
	seed := ask.Seed
	if seed < 0 {
		seed = rand.IntN(golden.Seeds)
	}
	args := append(append([]string{}, r.child...), "--library", r.library, "--suite", ask.Suite, "--size", g.Size, "--seed", fmt.Sprint(seed),
		"--within", ask.Within.String(), "--for", ask.For.String())
	if ask.Kernels != nil {
		args = append(args, "--kernel", strings.Join(ask.Kernels, ","))
	}
	if len(ask.First) > 0 {
		args = append(args, "--first", strings.Join(ask.First, ","))
	}
	return args
}

func (r *Runner) hold(gpu string) {
	r.cur.Lock()
	defer r.cur.Unlock()
	r.held[gpu] = true
}

func (r *Runner) isHeld(gpu string) bool {
	r.cur.Lock()
	defer r.cur.Unlock()
	return r.held[gpu]
}

// keep takes up what each GPU said. A wrong result stays until a soak or an intake screen has run on that GPU: quick reruns
// do not clear it. What an idle run that was cut short did not get to is no news. The caller holds mu.
func (r *Runner) keep(read catalog.GoldenRead, ask catalog.GoldenAsk, g policy.Golden) {
	all := catalog.GoldenRead{At: read.At, Results: map[string]sdc.Reading{}}
	if old := r.read.Load().Golden; old != nil {
		all.GPUs = append(all.GPUs, old.GPUs...)
		for u, x := range old.Results {
			all.Results[u] = x
		}
	}
	deep := ask.Suite == "soak" || ask.Suite == "intake"
	for _, gpu := range read.GPUs {
		was, had := all.Results[gpu.UUID]
		now := read.Results[gpu.UUID]
		if had && wrong(was, g) && !wrong(now, g) && !deep || ask.Kernels != nil && !wrong(now, g) && !now.Stuck {
			continue
		}
		all.GPUs, all.Results[gpu.UUID] = append(all.GPUs, gpu), now
	}
	all.GPUs = once(all.GPUs)
	if len(all.GPUs) > 0 {
		r.read.Store(&catalog.Beside{Golden: &all})
	}
}

func wrong(r sdc.Reading, g policy.Golden) bool {
	return r.Stuck || r.Have == checks.Read && golden.Judge(r.Result, sdc.Grades(g, r.Result.GPU.Simulated)).Outcome == golden.Wrong
}
