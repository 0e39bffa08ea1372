package queue

import (
	"errors"
	"fmt"
	"slices"

	"github.com/assay-gpu/assay/scheduler/quota"
)

// A Config is how a fleet's queue works: Slurm's PriorityWeight… and PriorityFlags, its partitions and QOS.
type Config struct {
	Weights Weights
	MaxAge  int64 // seconds until age counts in full; Slurm: 7 days
	Flags   Flags

	FairTree bool    // else classic
	Damp     float64 // FairShareDampeningFactor of classic; 1 or more
	HalfLife float64 // seconds; 0: nothing fades

	Nodes int // in the fleet
	CPUs  int // in the fleet

	Partitions []Partition
	QOS        []QOS
	// Assoc holds the limits of accounts and users, by the tree's names.
	Assoc   map[string]Limits
	Requeue RequeueRules
	// Open takes users that the tree does not name: they are charged to their account itself.
	Open bool
	// PreemptByTier makes partition tiers, not QOS lists, say who may preempt: Slurm's preempt/partition_prio.
	PreemptByTier bool
}

// Weights multiply the factors, which are between 0 and 1.
type Weights struct {
	Age, Assoc, FairShare, JobSize, Partition, QOS float64
	TRES                                           [quota.Resources]float64
}

// Flags are PriorityFlags.
type Flags struct {
	AccrueAlways      bool // age counts from submission
	FavorSmall        bool
	SmallRelativeTime bool // size by limit
	NoNormalAll       bool // partition, QOS and association values as they are, not as parts of the largest
}

// A PartitionState is Slurm's.
type PartitionState int

// States of a partition. Drain and Inactive differ in what may be submitted: nothing to a draining one.
const (
	Up PartitionState = iota
	Down
	DrainState
	Inactive
)

// A Partition is a part of the fleet with rules of its own. Partitions may overlap.
type Partition struct {
	Name        string
	State       PartitionState
	Tier        int // PriorityTier: jobs of a higher one go first whatever their priority
	JobFactor   int // PriorityJobFactor
	MaxTime     int64
	DefaultTime int64
	MinNodes    int
	MaxNodes    int    // 0: no limit
	QOS         string // the partition QOS: its limits come first
	AllowQOS    []string
	AllowAcct   []string
	DenyAcct    []string
	Total       quota.Amounts // what its nodes have
	Billing     [quota.Resources]float64
	BillingMode BillingMode
}

// A BillingMode says how weights make one number.
type BillingMode int

// Slurm's PriorityFlags MAX_TRES and MAX_TRES_GRES.
const (
	BillSum BillingMode = iota
	BillMax
	BillMaxGRES
)

// A QOS is a class of service.
type QOS struct {
	Name        string
	Priority    int
	UsageFactor float64
	NoDecay     bool
	DenyOnLimit bool
	NoReserve   bool
	OverPartQOS bool
	Preempts    []string // names of QOS whose jobs it may preempt
	Grace       int64    // seconds a victim of this QOS has left
	ExemptTime  int64    // seconds for which a job of this QOS cannot be preempted
	Limits      Limits
	rank        int
}

// yearLimit is what Slurm takes for an infinite time limit.
const yearLimit = 365 * 24 * 3600

// limit is the job's time limit in seconds, the partition's where it has none.
func (p *Partition) limit(j *Job) int64 {
	for _, s := range []int64{j.Limit, p.DefaultTime, p.MaxTime} {
		if s > 0 {
			return s
		}
	}
	return yearLimit
}

// check finds all faults and ranks the QOS: a QOS is above those it may preempt.
func (c *Config) check(tree *quota.Tree) error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.MaxAge <= 0 {
		bad("maximum age %d s: want more than nothing", c.MaxAge)
	}
	if c.Damp < 1 {
		bad("dampening factor %v: want 1 or more", c.Damp)
	}
	if c.Nodes <= 0 || c.CPUs <= 0 {
		bad("a fleet of %d nodes and %d CPUs: want both", c.Nodes, c.CPUs)
	}
	if len(c.Partitions) == 0 {
		bad("no partition")
	}
	qos := map[string]int{}
	for i, q := range c.QOS {
		if _, twice := qos[q.Name]; twice {
			bad("QOS %s: configured twice", q.Name)
		}
		qos[q.Name] = i
	}
	for _, q := range c.QOS {
		for _, v := range q.Preempts {
			if _, ok := qos[v]; !ok {
				bad("QOS %s preempts %s, which is not configured", q.Name, v)
			}
		}
	}
	seen := map[string]bool{}
	for _, p := range c.Partitions {
		if seen[p.Name] {
			bad("partition %s: configured twice", p.Name)
		}
		seen[p.Name] = true
		for _, name := range append(slices.Clone(p.AllowQOS), p.QOS) {
			if _, ok := qos[name]; !ok && name != "" {
				bad("partition %s names QOS %s, which is not configured", p.Name, name)
			}
		}
		if p.MaxNodes > 0 && p.MinNodes > p.MaxNodes {
			bad("partition %s: at least %d and at most %d nodes", p.Name, p.MinNodes, p.MaxNodes)
		}
	}
	for name := range c.Assoc {
		if _, ok := tree.Find(name); !ok {
			bad("limits for account %s, which is not in the tree", name)
		}
	}
	if len(faults) == 0 {
		rank := make([]int, len(c.QOS)) // 0: not yet, -1: being ranked
		for i := range c.QOS {
			if !c.rank(i, qos, rank) {
				bad("QOS %s may, through others, be preempted by those it preempts: jobs would push each other out for ever", c.QOS[i].Name)
				break
			}
		}
	}
	return errors.Join(faults...)
}

// rank gives QOS i a rank above all it preempts; false when there is a loop.
func (c *Config) rank(i int, index map[string]int, rank []int) bool {
	if rank[i] != 0 {
		return rank[i] > 0
	}
	rank[i] = -1
	r := 1
	for _, v := range c.QOS[i].Preempts {
		k := index[v]
		if !c.rank(k, index, rank) {
			return false
		}
		r = max(r, rank[k]+1)
	}
	rank[i], c.QOS[i].rank = r, r
	return true
}

func (c *Config) partition(name string) *Partition {
	for i := range c.Partitions {
		if c.Partitions[i].Name == name {
			return &c.Partitions[i]
		}
	}
	return nil
}

func (c *Config) qos(name string) *QOS {
	for i := range c.QOS {
		if c.QOS[i].Name == name {
			return &c.QOS[i]
		}
	}
	return nil
}

// DefaultConfig is Slurm's defaults over one partition "batch" and one QOS "normal", with weights as many sites have them.
func DefaultConfig(nodes, gpusPerNode, cpusPerNode int) Config {
	n := int64(nodes)
	return Config{
		Weights: Weights{Age: 1000, FairShare: 10000, JobSize: 1000, Partition: 1000, QOS: 10000},
		MaxAge:  7 * 24 * 3600, FairTree: true, Damp: 1, HalfLife: quota.DefaultHalfLife,
		Nodes: nodes, CPUs: nodes * cpusPerNode,
		Partitions: []Partition{{Name: "batch", Tier: 1, JobFactor: 1, Total: quota.Amounts{n * int64(gpusPerNode), n, n * int64(cpusPerNode), 0},
			Billing: [quota.Resources]float64{quota.GPUs: 1}}},
		QOS:     []QOS{{Name: "normal", UsageFactor: 1, Limits: NoLimits()}},
		Requeue: DefaultRequeueRules(),
	}
}
