package agent

import (
	"context"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// CheckGang checks the node for a gang of the built-in scheduler as a prolog does, and says on which certificate it may
// start.
func (a *Agent) CheckGang(ctx context.Context, o wire.GangOrder) (ok bool, why string, serial uint64) {
	d := a.prolog(ctx, gangRequest(Prolog, o))
	if err := a.call(ctx, func() {
		if a.held != nil {
			serial = a.held.Serial
		}
	}); err != nil {
		return false, err.Error(), 0
	}
	return d.Exit == 0, d.Why, serial
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
