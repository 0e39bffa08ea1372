package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/coordinator/wire"
)

var caseName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// evidence captures the node's state for a case into STATE_DIR/evidence/CASE and brings it to the control plane, before
// anything is done that could destroy it. What the deadline cuts is left out, and the result fails as partial.
func (a *Agent) evidence(ctx context.Context, e wire.Effect) wire.EffectResult {
	id := e.Args["case"]
	if !caseName.MatchString(id) {
		return failed("evidence: %q is no case id", id)
	}
	c := Capture{CaptureMeta: CaptureMeta{Node: a.cfg.Node, BootID: a.bootID, At: time.Now(), Version: a.cfg.Version}}
	snap, err := a.halfTime(ctx, a.flights.fresh)
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
		c.Expected, c.Policy, c.Events = a.expected(), *a.policy.Load(), slices.Clone(a.kernel.Events)
		if c.SnapshotErr != "" && a.last != nil {
			c.Snapshot = *a.last
		}
	}); err != nil {
		return failed("evidence: %v", err)
	}
	dir := a.store.path("evidence/" + id)
	refs, err := c.Write(dir)
	if err != nil {
		r := failed("evidence: %v", err)
		r.Refs = refs
		return r
	}
	page, err := goldenPage(dir, c.Beside.Golden)
	maps.Copy(refs, page)
	missing := []string{c.SnapshotErr, c.KernelErr}
	if err != nil {
		missing = append(missing, fmt.Sprintf("the page of golden runs: %v", err))
	}
	missing = append(missing, a.keep(ctx, id, dir, refs)) // what there is goes first: the driver's report may take long, or hang
	name, sum, err := a.bugReport(ctx, dir)
	switch {
	case err != nil:
		missing = append(missing, fmt.Sprintf("the driver's report: %v", err))
	case name != "":
		refs[name] = sum
		missing = append(missing, a.keep(ctx, id, dir, map[string]string{name: sum}))
	}
	missing = slices.DeleteFunc(missing, func(s string) bool { return s == "" })
	r := wire.EffectResult{Outcome: outcomeDone, Refs: refs, Detail: "complete"}
	if len(missing) > 0 {
		r.Outcome, r.Detail = outcomeFailed, "partial: "+missing[0]
	}
	return r
}

// halfTime reads within half the time that is left, so that a driver that hangs leaves time to send the rest.
func (a *Agent) halfTime(ctx context.Context, read func(context.Context) (catalog.Snapshot, error)) (catalog.Snapshot, error) {
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, until.Add(-time.Until(until)/2), errors.New("not read within half the evidence's time"))
		defer cancel()
	}
	return read(ctx)
}

// bugReport has the driver's report written beside the capture and returns its name and SHA-256; no name: there is no program
// for it. It has what the deadline leaves, less the time to send it.
func (a *Agent) bugReport(ctx context.Context, dir string) (name, sum string, err error) {
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, until.Add(-time.Until(until)/4), errReportSlow)
		defer cancel()
	}
	file, err := a.cfg.Runner.BugReport(ctx, dir)
	if err != nil || file == "" {
		return "", "", err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	h := sha256.Sum256(data)
	return filepath.Base(file), hex.EncodeToString(h[:]), nil
}

var errReportSlow = errors.New("it took longer than the evidence may")

// keep sends files of dir to the control plane, again and again until ctx ends. It returns what went wrong; empty when all
// of them are safe. The files stay here in any case.
func (a *Agent) keep(ctx context.Context, id, dir string, refs map[string]string) string {
	if a.cfg.Keeper == nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			_, err = a.cfg.Keeper.KeepEvidence(ctx, id, name, refs[name], data)
		}
		if err != nil {
			return fmt.Sprintf("%s is on the node alone: %v", name, err)
		}
	}
	return ""
}
