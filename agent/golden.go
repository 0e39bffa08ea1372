package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/sdc"
)

// A Tester runs golden suites on GPUs, in children that can be killed.
type Tester interface {
	Test(ctx context.Context, p policy.Policy, boot string, ask catalog.GoldenAsk) catalog.GoldenRead
	Alive() int          // children that have not ended
	Interrupt(why error) // tells the run under way to stop
}

// Times of a golden run for a prolog.
const (
	goldenGone   = time.Second             // a prolog passes only after a child has ended, and waits so long for it
	goldenMargin = 1500 * time.Millisecond // of the suite's budget, left for the children's end and the judgement
)

var errJob = errors.New("a job has come")

// clearGolden ends what golden children run, for a job has come, and waits a moment until they are gone. On the fast path
// there is none, and this is one look at a number.
func (a *Agent) clearGolden(ctx context.Context) {
	if a.cfg.Golden == nil || a.cfg.Golden.Alive() == 0 {
		return
	}
	a.cfg.Golden.Interrupt(errJob)
	for end := time.Now().Add(goldenGone); a.cfg.Golden.Alive() > 0 && time.Now().Before(end); {
		if !sleep(ctx, 5*time.Millisecond) {
			return
		}
	}
}

// goldenAlive is how many golden children have not ended.
func (a *Agent) goldenAlive() int {
	if a.cfg.Golden == nil {
		return 0
	}
	return a.cfg.Golden.Alive()
}

// goldenGPUs are the GPUs on which a prolog's suite may run golden kernels: the job's own, and those that no other job has.
// busy are the others. It runs in the loop.
func (a *Agent) goldenGPUs(r HookRequest) (free, busy []checks.GPU) {
	s := a.state()
	own, known := s.jobUUIDs(r.GPUs)
	var taken []string
	for _, j := range a.jobs {
		if j.Refused || j.Job.ID == r.Job.ID {
			continue
		}
		if len(j.Job.GPUs) == 0 {
			taken = s.allUUIDs() // it may have any
			break
		}
		theirs, _ := s.jobUUIDs(GPUSet{Indices: j.Job.GPUs})
		taken = append(taken, theirs...)
	}
	for _, g := range s.GPUs {
		if slices.Contains(taken, g.UUID) && !(known && slices.Contains(own, g.UUID)) {
			busy = append(busy, g)
		} else {
			free = append(free, g)
		}
	}
	return free, busy
}

// prologGolden runs the prolog suite of golden kernels for a prolog, where policy has prologs run it, and gives what it found.
// It has ended, or given up, before the suite's budget is over.
func (a *Agent) prologGolden(ctx context.Context, r HookRequest, budget time.Duration) []checks.Finding {
	p := *a.policy.Load()
	if a.cfg.Golden == nil || !p.Golden.Prolog || p.ModeOf(sdc.ID) == policy.Off || r.GPUs.None() {
		return nil
	}
	var free, busy []checks.GPU
	if a.call(ctx, func() { free, busy = a.goldenGPUs(r) }) != nil {
		return nil // the agent ends, and the suite with it
	}
	known := checks.Inventory{Node: a.cfg.Node, BootID: a.bootID, GPUs: free}
	var read catalog.GoldenRead
	if n := a.cfg.Golden.Alive(); n > 0 {
		read = openGolden(free, fmt.Sprintf("%d golden children of before have not ended", n))
	} else {
		limit := max(budget-goldenMargin, goldenMargin)
		gctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the golden suite did not end within its %s", limit))
		defer cancel()
		read = a.cfg.Golden.Test(gctx, p, a.bootID, catalog.GoldenAsk{Suite: "prolog", GPUs: free, Seed: -1, Within: limit, Leave: goldenGone})
	}
	for u, x := range openGolden(busy, "another job has it").Results {
		read.Results[u] = x
	}
	known.GPUs = append(known.GPUs, busy...)
	if at := read.At; at.IsZero() {
		read.At = time.Now()
	}
	return catalog.JudgeSDC(read.Results, read.At, known, p)
}

// openGolden is a reading of GPUs on which nothing ran.
func openGolden(gpus []checks.GPU, why string) catalog.GoldenRead {
	read := catalog.GoldenRead{GPUs: gpus, Results: map[string]sdc.Reading{}}
	for _, g := range gpus {
		read.Results[g.UUID] = sdc.Reading{Err: why}
	}
	return read
}

// withGolden puts what a prolog's golden run found in the place of what an earlier one said of the same GPUs.
func withGolden(aside, fresh []checks.Finding) []checks.Finding {
	if len(fresh) == 0 {
		return aside
	}
	kept := slices.DeleteFunc(slices.Clone(aside), func(f checks.Finding) bool {
		// A wrong result of before is not undone by a clean run of now.
		return f.Check == sdc.ID && slices.ContainsFunc(fresh, func(n checks.Finding) bool {
			return n.Subject.GPUUUID == f.Subject.GPUUUID && (f.Verdict != checks.Fail || n.Verdict == checks.Fail)
		})
	})
	return append(kept, fresh...)
}
