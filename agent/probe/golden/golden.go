// Package golden runs golden kernels for the agent, in children that can be killed, where policy has screens run them.
package golden

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

// A Runner runs suites and keeps what the last one found.
type Runner struct {
	child   []string // the command line of a child, its flags aside
	library string

	read atomic.Pointer[catalog.Beside] // what was read last; never changed in place

	mu   sync.Mutex
	boot string // in which it was read
}

// New makes a runner. child is the command line that runs worker.Child; library is the CUDA driver's.
func New(child []string, library string) *Runner {
	r := &Runner{child: child, library: library}
	r.read.Store(&catalog.Beside{})
	return r
}

// again is when a background look is next due: none runs kernels, so it only tells what the last screen found.
const again = time.Minute

// Look runs the suite of a screen, where policy has screens run one, and gives what the last one found.
func (r *Runner) Look(ctx context.Context, p policy.Policy, known checks.Inventory, screen checks.Level) ([]checks.Finding, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.Golden.Screen || p.ModeOf(sdc.ID) == policy.Off || r.boot != known.BootID {
		r.read.Store(&catalog.Beside{})
		r.boot = known.BootID
	}
	if p.Golden.Screen && p.ModeOf(sdc.ID) != policy.Off && screen != checks.NoLevel {
		known.GPUs = once(known.GPUs)
		results := r.run(ctx, p.Golden, known, screen)
		r.read.Store(&catalog.Beside{Golden: &catalog.GoldenRead{At: time.Now(), GPUs: known.GPUs, Results: results}})
	}
	return catalog.JudgeBeside(*r.read.Load(), screen, known, p), again
}

// once leaves out GPUs that were named before: the hardware that is known is what was accepted and what was seen.
func once(gpus []checks.GPU) []checks.GPU {
	var out []checks.GPU
	for _, g := range gpus {
		if !slices.ContainsFunc(out, func(o checks.GPU) bool { return o.UUID == g.UUID }) {
			out = append(out, g)
		}
	}
	return out
}

// Readings is what was read last. It does not wait for a run.
func (r *Runner) Readings() catalog.Beside { return *r.read.Load() }

// Quiesce returns once no child runs: Look holds the lock while one does.
func (r *Runner) Quiesce(ctx context.Context) error {
	free := make(chan struct{})
	go func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		close(free)
	}()
	select {
	case <-free:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("a golden run: %w", context.Cause(ctx))
	}
}

// suite is what a screen of a level runs, and how long it may take.
func suite(level checks.Level, within time.Duration) (name string, limit time.Duration) {
	switch level {
	case checks.Soak:
		return "soak", 2 * time.Hour
	case checks.Intake:
		return "intake", 4 * time.Hour
	}
	return "prolog", within
}

// run has every GPU that is known run the suite. A GPU that CUDA does not show stays unread.
func (r *Runner) run(ctx context.Context, g policy.Golden, known checks.Inventory, level checks.Level) map[string]sdc.Reading {
	name, limit := suite(level, g.Within.D())
	args := append(append([]string{}, r.child...), "--library", r.library, "--suite", name, "--size", g.Size, "--seed", fmt.Sprint(rand.IntN(golden.Seeds)))
	out := map[string]sdc.Reading{}
	var gpus []string
	for _, gpu := range known.GPUs {
		gpus = append(gpus, gpu.UUID)
	}
	var others []string
	if s, err := golden.LookupSuite(name); err == nil && (worker.Options{Suite: s}).Links() {
		others = gpus
	}
	w := worker.Parent{Command: args, Others: others, Stage: limit, Total: limit, Term: time.Second, Kill: 10 * time.Second, Killed: time.Minute}
	results, err := w.Run(ctx, gpus)
	var stuck *worker.StuckError
	for i, res := range results {
		reading := sdc.Reading{Have: checks.Read, Result: res}
		if err != nil && errors.As(err, &stuck) && stuck.GPU == gpus[i] {
			reading = sdc.Reading{Err: stuck.Error()}
		} else if len(res.Stages) == 0 {
			reading = sdc.Reading{Err: res.Err}
			if strings.HasPrefix(res.Err, "load ") {
				reading.Have = checks.NotSupported
			}
		}
		out[gpus[i]] = reading
	}
	return out
}
