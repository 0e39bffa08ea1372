package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/leftover"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A Reply is what a hook is told: its exit status and what to say on standard error, to which the hook adds whose words
// they are.
type Reply struct {
	Exit    int
	Message string
}

// epilogBudget bounds how long an epilog waits for its snapshot: the node stays COMPLETING meanwhile.
const epilogBudget = 10 * time.Second

// maxJobs bounds how many jobs are remembered between prolog and epilog.
const maxJobs = 256

// A jobRecord is what is kept of a job between its prolog and its epilog.
type jobRecord struct {
	Baseline
	Refused bool `json:"refused,omitempty"` // its prolog exited 1: it does not run here
}

// Hook answers a hook. It returns before the policy's budget and the wait for a permit are over, whatever hangs.
func (a *Agent) Hook(ctx context.Context, r HookRequest) Reply {
	start := time.Now()
	var reply Reply
	outcome := Bypass
	switch r.Hook {
	case Prolog:
		d := a.prolog(ctx, r)
		reply, outcome = Reply{d.Exit, d.Why}, d.Outcome
	case Epilog:
		reply.Message, outcome = a.epilog(ctx, r)
	case HealthCheck:
		outcome = FastPass
		if err := a.call(ctx, func() { reply.Message = a.oneLine() }); err != nil {
			reply.Message = err.Error()
		}
	}
	a.stats.hooked(r.Hook, outcome, time.Since(start))
	return reply
}

// prolog decides about a job's start, gathering evidence as Decide asks for it.
func (a *Agent) prolog(ctx context.Context, r HookRequest) Decision {
	a.clearGolden(ctx)
	for {
		var d Decision
		var p policy.Policy
		err := a.call(ctx, func() {
			if !a.sameBoot() {
				d = Decision{Next: Answer, Outcome: UnknownPass, Why: "the node has just booted; the agent starts anew"}
				return
			}
			d = Decide(a.state(), r)
			p = *a.policy.Load()
			if d.Next == Answer {
				a.noteJob(r, d)
			}
		})
		if err != nil {
			return Decision{Next: Answer, Outcome: UnknownPass, Why: err.Error()}
		}
		switch d.Next {
		case RunSuite:
			r.Suite, err = a.prologSuite(ctx, r, p.Hooks.Budget.D())
			if err != nil {
				return Decision{Next: Answer, Outcome: UnknownPass, Why: err.Error()}
			}
		case AskPermit:
			r.Permit = a.askPermit(ctx, r, d.OwnGPU, p.Hooks.PermitWait.D())
		default:
			if d.Outcome != FastPass {
				a.log.Info("prolog decided", "job", r.Job.ID, "exit", d.Exit, "outcome", string(d.Outcome), "reason", d.Why)
			}
			return d
		}
	}
}

// prologSuite runs the quick suite for a prolog, reports it, and returns what it found.
func (a *Agent) prologSuite(ctx context.Context, r HookRequest, budget time.Duration) (*SuiteResult, error) {
	sctx, cancel := context.WithTimeoutCause(ctx, budget, fmt.Errorf("the quick suite did not end within its %s", budget))
	defer cancel()
	fresh := a.prologGolden(sctx, r, budget)
	if len(fresh) > 0 {
		a.keepScreen() // should a case come of it, this is its evidence
	}
	snap, err := a.flights.fresh(sctx) // of after the kernels have run
	a.awaitKernel(sctx)
	var res SuiteResult
	cerr := a.call(ctx, func() {
		aside, _ := a.knownAside()
		res = a.judge(checks.Quick, snap, err, a.kernel.Open, withGolden(aside, fresh))
		a.takeIn(res)
		a.noteTold(res.Findings)
		a.burySafely(res.Findings)
		rep := a.report(checks.WhyProlog, res, res.Findings)
		job := r.Job
		rep.Job = &job
		// The spool's copy may arrive before the permit's: it says as much.
		asked := r
		asked.Suite = &res
		rep.OwnGPU = Decide(a.state(), asked).OwnGPU
		res.report = &rep
		a.put(rep)
	})
	return &res, cerr
}

// noteTold puts a suite's faults into the ledger, so that the background does not tell them again at once.
func (a *Agent) noteTold(fs []checks.Finding) {
	for _, f := range fs {
		if f.Verdict == checks.Fail {
			a.ledger.See(f, a.cfg.Clock())
		}
	}
}

// awaitKernel waits a moment for the kernel log to be read to its end, as after a burst.
func (a *Agent) awaitKernel(ctx context.Context) {
	for range 20 {
		done := true
		if a.call(ctx, func() { s := a.state(); done = s.Kernel.Drained || s.Kernel.Err != "" }) != nil || done {
			return
		}
		if !sleep(ctx, 25*time.Millisecond) {
			return
		}
	}
}

// askPermit asks the control plane for leave to exit 1.
func (a *Agent) askPermit(ctx context.Context, r HookRequest, own bool, wait time.Duration) *Permit {
	if a.cfg.Permit == nil {
		return &Permit{Reason: "this node is not enrolled"}
	}
	pctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("no answer within %s", wait))
	defer cancel()
	ask := wire.PermitAsk{Node: a.cfg.Node, BootID: a.bootID, Job: r.Job, OwnGPU: own}
	if r.Suite.report != nil {
		ask.Report = *r.Suite.report
	}
	ans, err := a.cfg.Permit.Permit(pctx, ask)
	if err != nil {
		if c := context.Cause(pctx); c != nil {
			err = c
		}
		return &Permit{Reason: err.Error()}
	}
	return &Permit{Answered: true, Granted: ans.Granted, Reason: ans.Reason}
}

// noteJob remembers a job whose prolog has been answered, with what the counters stand at. It runs in the loop; the
// disk is written after the hook has its answer.
func (a *Agent) noteJob(r HookRequest, d Decision) {
	if r.Job.ID == "" {
		return
	}
	j := jobRecord{Baseline: Baseline{Job: r.Job, BootID: a.bootID, Kernel: a.kernel.Seq}, Refused: d.Exit != 0}
	if a.last != nil {
		j.GPUs = Counters(*a.last)
	}
	a.jobs = slices.DeleteFunc(a.jobs, func(o jobRecord) bool { return o.Job.ID == j.Job.ID })
	if len(a.jobs) >= maxJobs {
		a.jobs = a.jobs[1:]
	}
	a.jobs = append(a.jobs, j)
	a.saveJobs()
}

// saveJobs has the jobs written soon. It runs in the loop, which does not wait: the next hook must not wait for the disk
// on behalf of the last one. Jobs that change faster than the disk writes are written as they stand in the end.
func (a *Agent) saveJobs() {
	select {
	case <-a.unsaved:
	default:
	}
	a.unsaved <- slices.Clone(a.jobs)
}

// jobsEvery is the least time between two writes of the jobs: a crash within it costs a job its baseline, and writing for
// each of many short jobs would cost the node more than that is worth.
const jobsEvery = time.Second

// writeJobs writes what saveJobs asks for, the last of it after the loop has ended.
func (a *Agent) writeJobs() {
	save := func(js []jobRecord) { _ = a.store.save("jobs.json", js) } // logged there; a lost baseline is Unknown
	for {
		select {
		case js := <-a.unsaved:
			save(js)
			select {
			case <-time.After(jobsEvery):
			case <-a.done:
			}
		case <-a.done:
			select {
			case js := <-a.unsaved:
				save(js)
			default:
			}
			return
		}
	}
}

// epilog compares a job's GPUs with what they were at its prolog and reports it. It never fails.
func (a *Agent) epilog(ctx context.Context, r HookRequest) (string, Outcome) {
	var job *jobRecord
	var ours bool
	err := a.call(ctx, func() {
		_, not := a.state().notOurs()
		ours = !not && a.sameBoot()
		if i := slices.IndexFunc(a.jobs, func(j jobRecord) bool { return j.Job.ID == r.Job.ID }); i >= 0 && r.Job.ID != "" {
			j := a.jobs[i]
			job = &j
			a.jobs = slices.Delete(slices.Clone(a.jobs), i, i+1)
			a.saveJobs()
		}
	})
	if err != nil || !ours || r.GPUs.None() || job != nil && job.Refused {
		return "", Bypass
	}
	ectx, cancel := context.WithTimeoutCause(ctx, epilogBudget, errors.New("the snapshot did not end in time"))
	defer cancel()
	snap, err := a.flights.fresh(ectx)
	uuids, others := a.gpusAtEnd(ctx, r.GPUs)
	var base *Baseline
	if job != nil {
		base = &job.Baseline
	}
	// The last processes of a job may take a moment to go.
	for range leftoverLooks - 1 {
		if err != nil || !anyFail(Leftovers(base, snap, uuids, others)) || !sleep(ectx, leftoverPause) {
			break
		}
		if again, aerr := a.flights.fresh(ectx); aerr == nil {
			snap = again
		}
	}
	a.awaitKernel(ectx)
	msg, outcome := "", SuitePass
	cerr := a.call(ctx, func() {
		res := a.judge(checks.Quick, snap, err, nil, nil)
		fs := notable(res.Findings)
		fs = append(fs, Deltas(base, snap, uuids)...)
		if a.policy.Load().ModeOf(leftover.ID) != policy.Off {
			fs = append(fs, Leftovers(base, snap, uuids, others)...)
		}
		a.takeIn(res)
		a.noteTold(fs)
		a.burySafely(fs)
		res.Verdict = checks.FoldFindings(append(slices.Clone(res.Findings), fs...))
		rep := a.report(checks.WhyEpilog, res, fs)
		rep.Job = &r.Job
		a.put(rep)
		if res.Verdict != checks.Pass {
			outcome = UnknownPass
		}
		msg = epilogText(fs)
	})
	if cerr != nil {
		return "", UnknownPass
	}
	return msg, outcome
}

// epilogText says what was found, in one line; nothing when all is well.
func epilogText(fs []checks.Finding) string {
	var ws []string
	for _, f := range fs {
		if f.Verdict == checks.Fail || f.Action == checks.Watch {
			ws = append(ws, describe(f))
		}
	}
	return strings.Join(ws, "; ")
}
