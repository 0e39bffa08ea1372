package coordinator

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/commit"
)

// indexed adds to a launch what follows from it.
func indexed(l commit.Launch) launch {
	x := launch{Launch: l, seat: make(map[string]int, len(l.Seats)), base: make([]int, len(l.Seats)+1)}
	names := make([]string, len(l.Seats))
	for i, s := range l.Seats {
		x.seat[s.Node], names[i] = i, s.Node
		x.base[i+1] = x.base[i] + l.RanksOn(s)
	}
	x.list = inOrder(names)
	return x
}

// inOrder writes names as a hostlist that expands to them in their order: a node that stands in for another has its rank.
func inOrder(names []string) string {
	sorted := slices.Clone(names)
	hostlist.Sort(sorted)
	if slices.Equal(sorted, names) {
		return hostlist.Compress(names)
	}
	at := make(map[string]int, len(names))
	for i, n := range sorted {
		at[n] = i
	}
	var parts []string
	for i := 0; i < len(names); {
		k := i + 1
		for k < len(names) && at[names[k]] > at[names[k-1]] {
			k++
		}
		parts = append(parts, hostlist.Compress(names[i:k]))
		i = k
	}
	return strings.Join(parts, ",")
}

// orders is what the agent of a node is to do for gangs, in the order of their ids.
func (s *state) orders(node string) []wire.GangOrder {
	var out []wire.GangOrder
	for _, id := range sortedKeys(s.launchesOn[node]) {
		l := s.launches[id]
		j, ok := s.jobs[l.Job]
		if !ok {
			continue
		}
		out = append(out, s.order(j, l, node))
	}
	return out
}

var gangPhase = map[commit.Phase]string{commit.Reserved: wire.GangReserve, commit.Going: wire.GangGo, commit.Ending: wire.GangStop}

func (s *state) order(j job, l launch, node string) wire.GangOrder {
	at := l.seat[node]
	seat := l.Seats[at]
	o := wire.GangOrder{
		Launch: l.ID, Job: j.ID, Name: j.Name, Phase: gangPhase[l.Phase], User: j.User, Script: s.scripts[j.Script].Text, Dir: j.Ask.Dir, Output: outputOf(j),
		Nodes: len(l.Seats), Serial: seat.Serial, LimitSec: l.Limit.Seconds(), ReserveSec: commit.DropAfter.Seconds(), Restarts: j.Launches - 1,
	}
	gpus := shapeOf(s.nodes[node]).Order(seat.GPUs, max(l.Joined, 1))
	o.GPUIndices = slices.Sorted(slices.Values(gpus))
	count := l.RanksOn(seat)
	for r := range count {
		// So many GPUs each; what does not divide goes to the first ranks.
		mine := gpus[r*len(gpus)/count : (r+1)*len(gpus)/count]
		o.Ranks = append(o.Ranks, wire.RankAsk{Rank: l.base[at] + r, Local: r, GPUs: slices.Clone(mine)})
	}
	o.Env = append(slices.Clone(s.scripts[j.Script].Env), s.jobEnvironment(j, l, at)...)
	return o
}

// outputOf is the file that a job's ranks write to; what its agent cannot know of an array is filled in.
func outputOf(j job) string {
	if j.Array == 0 {
		return j.Ask.Output
	}
	return strings.NewReplacer("%A", strconv.FormatInt(j.Array, 10), "%a", strconv.Itoa(j.Task), "%%", "%%").Replace(j.Ask.Output)
}

// jobEnvironment tells a rank of its job, in Slurm's names and in those of the launchers that training scripts know.
func (s *state) jobEnvironment(j job, l launch, at int) []string {
	first, ranks := l.Seats[0].Node, strconv.Itoa(l.base[len(l.Seats)])
	id, nodes, index := strconv.FormatInt(j.ID, 10), strconv.Itoa(len(l.Seats)), strconv.Itoa(at)
	var array []string
	if a, ok := s.arrays[j.Array]; ok {
		array = []string{
			fmt.Sprintf("SLURM_ARRAY_JOB_ID=%d", a.ID), fmt.Sprintf("SLURM_ARRAY_TASK_ID=%d", j.Task), fmt.Sprintf("SLURM_ARRAY_TASK_COUNT=%d", len(a.Tasks)),
			fmt.Sprintf("SLURM_ARRAY_TASK_MIN=%d", a.Tasks[0]), fmt.Sprintf("SLURM_ARRAY_TASK_MAX=%d", a.Tasks[len(a.Tasks)-1]),
		}
	}
	return append(array,
		"SLURM_JOB_ID="+id, "SLURM_JOBID="+id, "SLURM_JOB_NAME="+j.Name, "SLURM_JOB_PARTITION="+j.Partition, "SLURM_JOB_ACCOUNT="+j.Account,
		"SLURM_JOB_QOS="+j.QOS, "SLURM_JOB_USER="+j.User, "SLURM_JOB_NODELIST="+l.list, "SLURM_NODELIST="+l.list,
		"SLURM_JOB_NUM_NODES="+nodes, "SLURM_NNODES="+nodes, "SLURM_NTASKS="+ranks, "SLURM_NPROCS="+ranks, "SLURM_NODEID="+index,
		"SLURMD_NODENAME="+l.Seats[at].Node, fmt.Sprintf("SLURM_GPUS_ON_NODE=%d", bits.OnesCount32(l.Seats[at].GPUs)),
		"SLURM_RESTART_COUNT="+strconv.Itoa(j.Launches-1),
		"WORLD_SIZE="+ranks, "NODE_RANK="+index, "GROUP_RANK="+index, "MASTER_ADDR="+first,
		// One port for all ranks that two jobs on a node hardly share: above the well-known, below the ephemeral ones.
		"MASTER_PORT="+strconv.FormatInt(20_000+j.ID%10_000, 10),
		"ASSAY_JOB_ID="+id, "ASSAY_LAUNCH="+l.ID)
}
