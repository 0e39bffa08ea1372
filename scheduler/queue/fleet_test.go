package queue

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/scheduler/quota"
)

// fleet reads a configuration as the stories write it, over the defaults.
func (s *story) fleet(args map[string]string, input string) error {
	s.now = 0
	n := func(k string) int { v, _ := strconv.Atoi(args[k]); return v }
	cfg := DefaultConfig(n("nodes"), n("gpus"), n("cpus"))
	cfg.Assoc = map[string]Limits{}
	specs := []quota.Spec{}
	fresh := true
	for line := range strings.Lines(input) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		kv := map[string]string{}
		for _, w := range f[1:] {
			k, v, _ := strings.Cut(w, "=")
			kv[k] = v
		}
		var err error
		switch f[0] {
		case "weights":
			cfg.Weights = Weights{}
			for k, v := range kv {
				x, _ := strconv.ParseFloat(v, 64)
				*map[string]*float64{"age": &cfg.Weights.Age, "assoc": &cfg.Weights.Assoc, "fairshare": &cfg.Weights.FairShare, "jobsize": &cfg.Weights.JobSize,
					"partition": &cfg.Weights.Partition, "qos": &cfg.Weights.QOS, "gpu": &cfg.Weights.TRES[quota.GPUs]}[k] = x
			}
		case "flags":
			_, cfg.Flags.FavorSmall = kv["favor_small"]
			_, cfg.Flags.SmallRelativeTime = kv["small_relative_to_time"]
			_, cfg.Flags.AccrueAlways = kv["accrue_always"]
			_, cfg.PreemptByTier = kv["preempt_by_tier"]
			_, classic := kv["classic"]
			cfg.FairTree = !classic
		case "partition":
			if fresh {
				cfg.Partitions, fresh = nil, false
			}
			err = partitionLine(&cfg, f[1], kv, n("nodes"), n("gpus"))
		case "qos":
			err = qosLine(&cfg, f[1], kv)
		case "account", "user":
			spec := quota.Spec{Name: f[1], Parent: kv["parent"], User: f[0] == "user", Shares: 1, Nominal: quota.None(), Borrow: quota.None(), Lend: quota.None()}
			if v, ok := kv["nominal"]; ok {
				spec.Nominal, err = quota.ParseAmounts(strings.ReplaceAll(v, ":", "="), quota.None())
			}
			if v, ok := kv["shares"]; ok {
				spec.Shares, err = strconv.Atoi(v)
			}
			specs = append(specs, spec)
			name := f[1]
			if spec.User {
				name = quota.User(spec.Parent, f[1])
			}
			l := NoLimits()
			if set, e := limitWords(&l, kv); e != nil {
				err = e
			} else if set {
				cfg.Assoc[name] = l
			}
		default:
			err = fmt.Errorf("no line %s", f[0])
		}
		if err != nil {
			return err
		}
	}
	if len(specs) == 0 {
		for _, u := range []string{"ann", "bob"} {
			specs = append(specs, quota.Spec{Name: u, Parent: "team", User: true, Shares: 1, Nominal: quota.None(), Borrow: quota.None(), Lend: quota.None()})
		}
		specs = append(specs, quota.Spec{Name: "team", Shares: 1, Nominal: quota.None(), Borrow: quota.None(), Lend: quota.None()})
	}
	tree, err := quota.NewTree(specs)
	if err != nil {
		return err
	}
	s.cfg = cfg
	s.q, err = New(cfg, tree, s.now)
	return err
}

func partitionLine(cfg *Config, name string, kv map[string]string, nodes, gpus int) error {
	p := Partition{Name: name, JobFactor: 1, Tier: 1, Total: quota.Amounts{int64(nodes * gpus), int64(nodes)}, Billing: [quota.Resources]float64{quota.GPUs: 1}}
	var err error
	for k, v := range kv {
		n, _ := strconv.Atoi(v)
		switch k {
		case "tier":
			p.Tier = n
		case "factor":
			p.JobFactor = n
		case "maxtime":
			p.MaxTime, err = seconds(v)
		case "maxnodes":
			p.MaxNodes = n
		case "qos":
			p.QOS = v
		case "down":
			p.State = Down
		case "drain":
			p.State = DrainState
		case "denyaccounts":
			p.DenyAcct = strings.Split(v, ",")
		case "allowqos":
			p.AllowQOS = strings.Split(v, ",")
		case name:
		default:
			err = fmt.Errorf("partition: no field %s", k)
		}
		if err != nil {
			return err
		}
	}
	cfg.Partitions = append(cfg.Partitions, p)
	return nil
}

func qosLine(cfg *Config, name string, kv map[string]string) error {
	q := QOS{Name: name, UsageFactor: 1, Limits: NoLimits()}
	for k, v := range kv {
		switch k {
		case "priority":
			q.Priority, _ = strconv.Atoi(v)
		case "preempts":
			q.Preempts = strings.Split(v, ",")
		case "denyonlimit":
			q.DenyOnLimit = true
		case "overpartqos":
			q.OverPartQOS = true
		case "usagefactor":
			q.UsageFactor, _ = strconv.ParseFloat(v, 64)
		case "nodecay":
			q.NoDecay = true
		}
	}
	if _, err := limitWords(&q.Limits, kv); err != nil {
		return err
	}
	if old := cfg.qos(name); old != nil {
		*old = q
		return nil
	}
	cfg.QOS = append(cfg.QOS, q)
	return nil
}

func limitWords(l *Limits, kv map[string]string) (set bool, err error) {
	counts := map[string]*int{"grpjobs": &l.GrpJobs, "grpsubmit": &l.GrpSubmit, "maxjobs": &l.MaxJobs, "maxsubmit": &l.MaxSubmit,
		"maxjobsperaccount": &l.MaxJobsPerAccount, "maxaccrue": &l.MaxAccrue, "limitpriority": &l.Priority}
	amounts := map[string]*quota.Amounts{"grp": &l.Grp, "grprunminutes": &l.GrpRunMinutes, "grpminutes": &l.GrpMinutes, "maxperuser": &l.MaxPerUser,
		"maxperaccount": &l.MaxPerAccount, "maxperjob": &l.MaxPerJob, "maxpernode": &l.MaxPerNode}
	for k, v := range kv {
		switch {
		case counts[k] != nil:
			*counts[k], err = strconv.Atoi(v)
		case amounts[k] != nil:
			*amounts[k], err = quota.ParseAmounts(strings.ReplaceAll(v, ":", "="), quota.None())
		case k == "maxwall":
			l.MaxWall, err = seconds(v)
		default:
			continue
		}
		set = true
		if err != nil {
			return set, err
		}
	}
	return set, nil
}
