package agent

import (
	"context"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/leftover"
)

// How often, and how far apart, a job's GPUs are looked at before what computes on them counts as left behind. Source:
// facebookresearch/gcm, three tries.
const (
	leftoverLooks = 3
	leftoverPause = 2 * time.Second
)

// Leftovers says which of a job's GPUs still hold processes that were not there at its prolog. uuids are the job's GPUs;
// others are GPUs that other jobs have as well, on which nothing can be told.
func Leftovers(base *Baseline, now catalog.Snapshot, uuids, others []string) []checks.Finding {
	var fs []checks.Finding
	for _, g := range now.GPUs {
		if !slices.Contains(uuids, g.UUID) || slices.Contains(others, g.UUID) {
			continue
		}
		var before []int
		if base != nil && base.BootID == now.BootID {
			if i := slices.IndexFunc(base.GPUs, func(c GPUCounters) bool { return c.UUID == g.UUID }); i >= 0 {
				before = base.GPUs[i].Processes
			}
		}
		f := leftover.Judge(g.GPU, g.Leftover, before)
		f.At, f.BootID = now.At, now.BootID
		fs = append(fs, f)
	}
	return fs
}

// gpusAtEnd gives the GPUs of a job that ends, and those that other jobs on the node have.
func (a *Agent) gpusAtEnd(ctx context.Context, set GPUSet) (uuids, others []string) {
	_ = a.call(ctx, func() { // an agent that stops tells nothing any more
		uuids, _ = a.state().jobUUIDs(set)
		for _, j := range a.jobs {
			if !j.Refused {
				more, _ := a.state().jobUUIDs(GPUSet{Indices: j.Job.GPUs})
				others = append(others, more...)
			}
		}
	})
	return uuids, others
}

func anyFail(fs []checks.Finding) bool {
	return slices.ContainsFunc(fs, func(f checks.Finding) bool { return f.Verdict == checks.Fail })
}
