package rules

import (
	"errors"
	"maps"
	"slices"

	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/quota"
)

// A Fleet is the names of the nodes there are, and the GPUs of each.
type Fleet map[string]int

// A Member is a user of an account: of those that take everybody, who has come so far.
type Member struct{ Account, User string }

// cpusPerNode only weighs a job's size where Slurm's factor counts CPUs; GPUs are what is placed.
const cpusPerNode = 96

var partitionStates = map[string]queue.PartitionState{"": queue.Up, "up": queue.Up, "down": queue.Down, "drain": queue.DrainState, "inactive": queue.Inactive}

var billingModes = map[string]queue.BillingMode{"": queue.BillSum, "sum": queue.BillSum, "max": queue.BillMax, "max_gres": queue.BillMaxGRES}

// Build makes of a whole book what queue and quota read. The error names every fault.
func (b Book) Build(f Fleet, members []Member) (queue.Config, *quota.Tree, error) {
	if err := b.faults(); err != nil {
		return queue.Config{}, nil, err
	}
	c := queue.DefaultConfig(max(len(f), 1), 8, cpusPerNode)
	b.Priority.into(&c)
	c.QOS, c.Partitions, c.Assoc, c.Open = nil, nil, map[string]queue.Limits{}, true
	for _, q := range sorted(b.QOS) {
		factor := 1.0
		if q.UsageFactor != nil {
			factor = *q.UsageFactor
		}
		c.QOS = append(c.QOS, queue.QOS{Name: q.Name, Priority: q.Priority, UsageFactor: factor, NoDecay: q.NoDecay, DenyOnLimit: q.DenyOnLimit,
			NoReserve: q.NoReserve, OverPartQOS: q.OverPartQOS, Preempts: q.Preempts, Grace: int64(q.Grace), ExemptTime: int64(q.Exempt), Limits: q.Limits.queue(0)})
	}
	for _, p := range sorted(b.Partitions) {
		c.Partitions = append(c.Partitions, b.partition(p, f))
	}
	specs := b.specs(members, c.Assoc)
	tree, err := quota.NewTree(specs)
	if err != nil {
		return c, nil, err
	}
	if _, err := queue.New(c, tree, 0); err != nil {
		return c, nil, errors.Join(err)
	}
	return c, tree, nil
}

// into puts the weights that are given into c.
func (p *Priority) into(c *queue.Config) {
	for _, x := range []struct {
		from *float64
		to   *float64
	}{
		{p.Age, &c.Weights.Age}, {p.FairShare, &c.Weights.FairShare}, {p.JobSize, &c.Weights.JobSize}, {p.Partition, &c.Weights.Partition},
		{p.QOS, &c.Weights.QOS}, {p.Assoc, &c.Weights.Assoc}, {p.Damp, &c.Damp},
	} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	if w, err := p.TRES.values(); err == nil {
		c.Weights.TRES = w
	}
	if p.MaxAge > 0 {
		c.MaxAge = int64(p.MaxAge)
	}
	if p.HalfLife > 0 {
		c.HalfLife = float64(p.HalfLife)
	}
	c.FairTree = !p.Classic
	c.Flags = queue.Flags{AccrueAlways: p.AccrueHeld, FavorSmall: p.FavorSmall, SmallRelativeTime: p.ByTime, NoNormalAll: p.Raw}
}

// Filled is p with what holds where it says nothing.
func (p Priority) Filled() Priority {
	c := queue.DefaultConfig(1, 1, 1)
	p.into(&c)
	p.Age, p.FairShare, p.JobSize, p.Partition, p.QOS, p.Assoc = &c.Weights.Age, &c.Weights.FairShare, &c.Weights.JobSize, &c.Weights.Partition, &c.Weights.QOS, &c.Weights.Assoc
	p.MaxAge, p.HalfLife = Time(c.MaxAge), Time(c.HalfLife)
	o := p.Plan()
	p.Depth, p.Ahead = o.Depth, Time(o.Window)
	if p.Backfill == "" {
		p.Backfill = "conservative"
	}
	return p
}

func (b *Book) partition(p Partition, f Fleet) queue.Partition {
	names, _ := nodeNames(p.Nodes) // checked
	if names == nil {
		names = slices.Collect(maps.Keys(f))
	}
	var total quota.Amounts
	for _, n := range names {
		if gpus, ok := f[n]; ok {
			total = total.Plus(quota.Amounts{int64(gpus), 1, cpusPerNode, 0})
		}
	}
	out := queue.Partition{Name: p.Name, State: partitionStates[p.State], Tier: max(p.Tier, 1), JobFactor: max(p.JobFactor, 1), MaxTime: int64(p.MaxTime),
		DefaultTime: int64(p.DefaultTime), MinNodes: p.MinNodes, MaxNodes: p.MaxNodes, QOS: p.QOS, AllowQOS: p.AllowQOS,
		AllowAcct: b.below(p.AllowAccts), DenyAcct: b.below(p.DenyAccts), Total: total, BillingMode: billingModes[p.BillingMode]}
	if out.Billing, _ = p.Billing.values(); p.Billing == "" {
		out.Billing[quota.GPUs] = 1
	}
	return out
}

// below is the accounts named and all below them.
func (b *Book) below(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	in := map[string]bool{}
	for _, n := range names {
		in[n] = true
	}
	for more := true; more; {
		more = false
		for _, a := range b.Accounts {
			if !in[a.Name] && in[a.Parent] {
				in[a.Name], more = true, true
			}
		}
	}
	return slices.Sorted(maps.Keys(in))
}

// specs are the accounts and users of the tree; limits of both go into assoc.
func (b *Book) specs(members []Member, assoc map[string]queue.Limits) []quota.Spec {
	var specs []quota.Spec
	known := map[Member]bool{}
	user := func(a *Account, name string, share Share) {
		if m := (Member{a.Name, name}); name != "" && !known[m] {
			known[m] = true
			specs = append(specs, quota.Spec{Name: name, Parent: a.Name, User: true, Shares: share.shares(), Nominal: quota.None(), Borrow: quota.None(), Lend: quota.None()})
			if a.Priority != 0 {
				l := queue.NoLimits()
				l.Priority = a.Priority
				assoc[quota.User(a.Name, name)] = l
			}
		}
	}
	for _, a := range sorted(b.Accounts) {
		specs = append(specs, quota.Spec{Name: a.Name, Parent: a.Parent, Shares: a.Share.shares(), Nominal: a.Nominal.must(), Borrow: a.Borrow.must(), Lend: a.Lend.must()})
		if l := a.Limits.queue(a.Priority); l != queue.NoLimits() {
			assoc[a.Name] = l
		}
		for _, u := range a.Users {
			user(&a, u.Name, u.Share)
		}
	}
	for _, m := range members {
		if a, ok := b.Accounts[m.Account]; ok {
			user(&a, m.User, 0)
		}
	}
	return specs
}
