package agent

import (
	"context"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// CheckGang reads the node afresh, checks it for a gang of the built-in scheduler as a prolog does, and says on which
// certificate it may start. A prolog passes on a reading up to a minute old; a gang of a thousand nodes that starts on one that
// broke within that minute is lost whole. Nor does it start where a certificate is void, whether the guard has room or not: the
// gang goes elsewhere, which takes no capacity.
func (a *Agent) CheckGang(ctx context.Context, o wire.GangOrder) (ok bool, why string, serial uint64) {
	snap, err := a.flights.fresh(ctx)
	a.awaitKernel(ctx)
	if err := a.call(ctx, func() { a.endCycle(snap, err) }); err != nil {
		return false, err.Error(), 0
	}
	d := a.prolog(ctx, gangRequest(Prolog, o))
	ok, why = d.Exit == 0, d.Why
	if err := a.call(ctx, func() {
		if a.held != nil {
			serial = a.held.Serial
		}
		if ok && a.tombstone != nil && a.tombstone.Serial >= serial {
			ok, why = false, a.tombstone.Reason
		}
	}); err != nil {
		return false, err.Error(), 0
	}
	return ok, why, serial
}

// EndGang looks at the node after a gang's last process, as an epilog does.
func (a *Agent) EndGang(ctx context.Context, o wire.GangOrder) { a.epilog(ctx, gangRequest(Epilog, o)) }

// gangRequest is what a hook would ask for the node's part of a gang.
func gangRequest(h Hook, o wire.GangOrder) HookRequest {
	var gpus []string
	for _, i := range o.GPUIndices {
		gpus = append(gpus, strconv.Itoa(i))
	}
	return NewHookRequest(h, map[string]string{
		"SLURM_JOB_ID": strconv.FormatInt(o.Job, 10), "SLURM_JOB_USER": o.User, "SLURM_JOB_NUM_NODES": strconv.Itoa(o.Nodes),
		"SLURM_JOB_RESTART_COUNT": strconv.Itoa(o.Restarts), "SLURM_JOB_GPUS": strings.Join(gpus, ","),
	})
}
