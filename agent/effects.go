package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// defaultEffectTime bounds an effect that carries no deadline.
const defaultEffectTime = 10 * time.Minute

// carryEffects carries out the effects of the desired state, in order, one at a time, each once.
//
// A desired state of a lower term is never admitted, so that an old leader's effects do not get here. An effect of an
// earlier term within an admitted state is the present leader's own: it has taken it over.
func (a *Agent) carryEffects(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.effects.work:
		}
		for ctx.Err() == nil {
			e, resumed, startedIn, ok, err := a.effects.begin()
			if err != nil {
				a.log.Error("effect waits for the disk", "effect", e.ID, "err", err)
				if !sleep(ctx, 5*time.Second) {
					return
				}
				continue
			}
			if !ok {
				break
			}
			a.carry(ctx, e, resumed, startedIn)
		}
	}
}

// carry does one effect and notes how it went, unless the agent ends first: then the next start goes on with it.
func (a *Agent) carry(ctx context.Context, e wire.Effect, resumed bool, startedIn string) {
	limit := defaultEffectTime
	if !e.Deadline.IsZero() && !e.Created.IsZero() && e.Deadline.After(e.Created) {
		// Both are the leader's times; only their difference means anything here.
		limit = e.Deadline.Sub(e.Created)
	}
	ectx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %s", limit))
	defer cancel()
	start := time.Now()
	r := a.do(ectx, e, resumed, startedIn)
	if ctx.Err() != nil && r.Outcome != outcomeDone && r.Outcome != outcomeSkipped {
		return
	}
	r.ID, r.Node, r.BootID = e.ID, a.cfg.Node, a.bootID
	a.effects.end(r)
	a.log.Info("effect ended", "effect", e.ID, "kind", e.Kind, "outcome", r.Outcome, "detail", r.Detail, "duration_seconds", time.Since(start).Seconds())
}

func failed(format string, args ...any) wire.EffectResult {
	return wire.EffectResult{Outcome: outcomeFailed, Detail: fmt.Sprintf(format, args...)}
}

func (a *Agent) do(ctx context.Context, e wire.Effect, resumed bool, startedIn string) wire.EffectResult {
	if resumed && e.Kind == lifecycle.EffectReboot && startedIn != a.bootID {
		return wire.EffectResult{Outcome: outcomeDone, Detail: "booted as " + a.bootID}
	}
	if e.BootID != "" && e.BootID != a.bootID {
		return wire.EffectResult{Outcome: outcomeSkipped, Detail: fmt.Sprintf("it is for boot %s, this is %s", e.BootID, a.bootID)}
	}
	switch e.Kind {
	case lifecycle.EffectScreen:
		return a.screen(ctx, e)
	case lifecycle.EffectEvidence:
		return a.evidence(ctx, e)
	case lifecycle.EffectResetGPU:
		if resumed {
			return failed("the agent ended while the reset was under way")
		}
		return a.reset(ctx, e)
	case lifecycle.EffectReboot:
		return a.reboot(ctx, resumed)
	case lifecycle.EffectDrill:
		return a.drill(ctx, e)
	}
	return wire.EffectResult{Outcome: outcomeSkipped, Detail: fmt.Sprintf("this agent carries out no %q", e.Kind)}
}

// screen runs the suite of a level and reports it. Kernel-log faults count when they come while it runs: what was before
// is why the screen was asked for.
func (a *Agent) screen(ctx context.Context, e wire.Effect) wire.EffectResult {
	var level checks.Level
	if err := level.UnmarshalText([]byte(e.Args["level"])); err != nil || level == checks.NoLevel {
		return failed("screen at level %q: no such level", e.Args["level"])
	}
	var id uint64
	var faults []checks.Finding
	watch := func(f checks.Finding) { faults = append(faults, f) }
	if err := a.call(ctx, func() { id = a.watchKernel(watch) }); err != nil {
		return failed("%v", err)
	}
	defer a.post(context.WithoutCancel(ctx), func() { a.unwatchKernel(id) })
	aside := a.screenAside(ctx, level) // it may take long, and load the GPUs: the snapshot is of after it
	a.cfg.Prober.Renew()
	snap, err := a.flights.fresh(ctx)
	if ctx.Err() != nil {
		return failed("%v", context.Cause(ctx))
	}
	a.awaitKernel(ctx)
	var verdict checks.Verdict
	cerr := a.call(ctx, func() {
		res := a.judge(level, snap, err, slices.Clone(faults), aside)
		a.takeIn(res)
		a.noteTold(res.Findings)
		a.burySafely(res.Findings)
		r := a.report(checks.WhyScreen, res, res.Findings)
		r.ID, r.Screen = screenID(e.ID, a.bootID), e.ID
		a.put(r)
		verdict = res.Verdict
	})
	if cerr != nil {
		return failed("%v", cerr)
	}
	return wire.EffectResult{Outcome: outcomeDone, Detail: "verdict " + verdict.String()}
}

// reset resets GPUs, once nobody has one open.
func (a *Agent) reset(ctx context.Context, e wire.Effect) wire.EffectResult {
	gpus := strings.FieldsFunc(e.Args["gpus"], func(r rune) bool { return r == ',' || r == ' ' })
	if len(gpus) == 0 {
		_ = a.call(ctx, func() { // an error leaves gpus empty, which is answered below
			for _, g := range a.inventory.GPUs {
				gpus = append(gpus, g.UUID)
			}
		})
	}
	if len(gpus) == 0 {
		return failed("reset: no GPU is named, and none is known")
	}
	resume := a.flights.pause()
	defer resume()
	if err := a.quiesce(ctx); err != nil {
		return failed("reset refused: %v", err)
	}
	for _, u := range gpus {
		if err := a.cfg.Runner.Reset(ctx, u); err != nil {
			return failed("reset %s: %v", u, err)
		}
	}
	return wire.EffectResult{Outcome: outcomeDone, Detail: fmt.Sprintf("%d GPUs reset", len(gpus))}
}

// quiesce ends our own children and makes sure that nobody else has a GPU open.
func (a *Agent) quiesce(ctx context.Context) error {
	if err := a.cfg.Prober.Quiesce(ctx); err != nil {
		return fmt.Errorf("our own probe: %w", err)
	}
	if err := a.quiesceAsides(ctx); err != nil {
		return err
	}
	holders, err := a.cfg.Runner.Holders()
	if err != nil {
		return fmt.Errorf("who has a GPU open: %w", err)
	}
	if len(holders) > 0 {
		return fmt.Errorf("GPU device files are open in %s", strings.Join(holders, ", "))
	}
	return nil
}

// reboot starts a reboot and waits to be ended by it.
func (a *Agent) reboot(ctx context.Context, resumed bool) wire.EffectResult {
	if !resumed {
		if err := a.cfg.Runner.Reboot(ctx); err != nil {
			return failed("reboot: %v", err)
		}
	}
	for sleep(ctx, time.Second) {
		if !a.sameBoot() {
			break // what simulates the node has booted; the next run says so
		}
	}
	return failed("reboot: the node did not go down: %v", context.Cause(ctx))
}
