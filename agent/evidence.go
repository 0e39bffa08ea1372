package agent

import (
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
)

var caseName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// evidence captures the node's state for a case into STATE_DIR/evidence/CASE. What the deadline cuts is left out and the
// result says partial.
func (a *Agent) evidence(ctx context.Context, e wire.Effect) wire.EffectResult {
	id := e.Args["case"]
	if !caseName.MatchString(id) {
		return failed("evidence: %q is no case id", id)
	}
	c := Capture{CaptureMeta: CaptureMeta{Node: a.cfg.Node, BootID: a.bootID, At: time.Now(), Version: a.cfg.Version}}
	snap, err := a.flights.fresh(ctx)
	if err != nil {
		c.SnapshotErr = err.Error()
	}
	c.Snapshot = snap
	if a.cfg.DumpKernel == nil {
		c.KernelErr = "no kernel log is configured"
	} else if c.Kernel, err = a.cfg.DumpKernel(ctx); err != nil {
		c.KernelErr = err.Error()
	}
	c.Beside = a.readings()
	// The rest is in memory, and is taken even when the deadline has passed.
	if err := a.call(context.WithoutCancel(ctx), func() {
		c.Expected, c.Policy = a.expected(), *a.policy.Load()
		if c.SnapshotErr != "" && a.last != nil {
			c.Snapshot = *a.last
		}
	}); err != nil {
		return failed("evidence: %v", err)
	}
	refs, err := c.Write(a.store.path("evidence/" + id))
	if err != nil {
		r := failed("evidence: %v", err)
		r.Refs = refs
		return r
	}
	r := wire.EffectResult{Outcome: outcomeDone, Refs: refs, Detail: "complete"}
	if missing := slices.DeleteFunc([]string{c.SnapshotErr, c.KernelErr}, func(s string) bool { return s == "" }); len(missing) > 0 {
		r.Detail = "partial: " + missing[0]
	}
	return r
}
