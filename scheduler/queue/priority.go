package queue

import (
	"math"

	"github.com/assay-gpu/assay/scheduler/quota"
)

// Factors are what a job's priority is made of, each between 0 and 1, before the weights. sprio shows the same.
type Factors struct {
	Age, Assoc, FairShare, JobSize, Partition, QOS float64
	TRES                                           [quota.Resources]float64
}

// maxima are the largest values configured, by which factors are made parts of one.
type maxima struct{ partition, qos, assoc int }

func (c *Config) maxima() maxima {
	var m maxima
	for _, p := range c.Partitions {
		m.partition = max(m.partition, p.JobFactor)
	}
	for _, q := range c.QOS {
		m.qos = max(m.qos, q.Priority)
	}
	for _, l := range c.Assoc {
		m.assoc = max(m.assoc, l.Priority)
	}
	return m
}

// factors are the job's at that time. Source: Slurm, priority_multifactor.c, set_priority_factors.
func (c *Config) factors(j *Job, p *Partition, q *QOS, assocPriority int, fairShare float64, m maxima, now int64) Factors {
	f := Factors{FairShare: fairShare, JobSize: c.jobSize(j, p)}
	if j.Accrue > 0 && now > j.Accrue {
		f.Age = min(1, float64(now-j.Accrue)/float64(c.MaxAge))
	}
	part := func(value, most int) float64 {
		if c.Flags.NoNormalAll {
			return float64(value)
		}
		if most == 0 {
			return 0
		}
		return float64(value) / float64(most)
	}
	f.Partition, f.QOS, f.Assoc = part(p.JobFactor, m.partition), part(q.Priority, m.qos), part(assocPriority, m.assoc)
	for r, n := range j.Amounts() {
		if p.Total[r] > 0 {
			f.TRES[r] = float64(n) / float64(p.Total[r])
		}
	}
	return f
}

// jobSize is Slurm's: half by nodes and half by CPUs. GPUs do not count here, only through the TRES weights. A job that
// names no CPUs counts by its nodes alone.
func (c *Config) jobSize(j *Job, p *Partition) float64 {
	nodes, cpus := float64(j.Nodes), float64(j.Nodes*j.CPUsPerNode)
	fleet, all := float64(c.Nodes), float64(c.CPUs)
	var f float64
	switch {
	case c.Flags.SmallRelativeTime:
		minutes := float64((p.limit(j) + 59) / 60)
		f = max(nodes*all/fleet, cpus) / minutes / all
		if c.Flags.FavorSmall {
			f = 1 - f
		}
	case c.Flags.FavorSmall:
		f = (fleet - nodes) / fleet
		if cpus > 0 {
			f = (f + (all-cpus)/all) / 2
		}
	default:
		f = nodes / fleet
		if cpus > 0 {
			f = (f + cpus/all) / 2
		}
	}
	return min(1, max(0, f))
}

// Sum is the priority that factors and weights make: between 1 and 2^32-1. 0 is for held jobs.
func (w Weights) Sum(f Factors, site, nice int) uint32 {
	p := float64(site) + w.Age*f.Age + w.Assoc*f.Assoc + w.FairShare*f.FairShare + w.JobSize*f.JobSize + w.Partition*f.Partition + w.QOS*f.QOS
	for r := range f.TRES {
		p += w.TRES[r] * f.TRES[r]
	}
	p -= float64(nice)
	return uint32(min(math.MaxUint32, max(1, p)))
}

// billing is what a running job is charged for each second. Source: Slurm, TRESBillingWeights and the flags MAX_TRES and
// MAX_TRES_GRES. A partition without weights bills CPUs.
func (p *Partition) billing(j *Job) float64 {
	w := p.Billing
	if w == ([quota.Resources]float64{}) {
		w[quota.CPUs] = 1
	}
	a := j.Amounts()
	var sum, most float64
	for r := range a {
		x := w[r] * float64(a[r])
		gres := quota.Resource(r) == quota.GPUs
		switch {
		case p.BillingMode == BillSum, p.BillingMode == BillMaxGRES && gres:
			sum += x
		default:
			most = max(most, x)
		}
	}
	return sum + most
}
