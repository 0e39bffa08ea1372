package queue

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/slurm/slurmtest"
	"github.com/assay-gpu/assay/scheduler/quota"
)

// The accounts and users of the comparison. Users are some that every Debian has.
var (
	siteAccounts = []struct {
		name, parent string
		shares       int
	}{{"a", "root", 40}, {"b", "a", 30}, {"c", "a", 10}, {"d", "root", 60}, {"e", "d", 25}, {"f", "d", 35}}
	siteUsers = []struct {
		name, account string
		shares        int
		priority      int
		runs          []string // what each runs: nodes, and CPUs on each; at once
	}{
		{"games", "b", 1, 20, []string{"gpu1,gpu2 4", "gpu1 4"}},
		{"man", "c", 2, 0, []string{"gpu3 8"}},
		{"lp", "c", 1, 80, nil},
		{"proxy", "c", 1, 0, nil}, // as lp: tied
		{"mail", "e", 1, 0, []string{"gpu4 2"}},
		{"news", "f", 3, 0, []string{"gpu2,gpu4 4"}},
		{"uucp", "f", quota.ShareParent, 0, []string{"gpu4 2"}},
	}
	// The jobs that wait: who, where, and what is asked.
	siteJobs = []struct {
		user, account, partition, qos string
		nodes, perNode, gpus, nice    int
		minutes                       int64
	}{
		{"games", "b", "gpu", "normal", 1, 1, 0, 0, 60},
		{"man", "c", "gpu", "high", 2, 4, 8, 0, 120},
		{"lp", "c", "small", "low", 1, 8, 4, 0, 30},
		{"proxy", "c", "small", "normal", 1, 2, 1, 150, 10},
		{"mail", "e", "gpu", "low", 4, 8, 8, 0, 600},
		{"news", "f", "gpu", "normal", 3, 2, 2, 40, 45},
		{"uucp", "f", "small", "high", 1, 1, 8, 0, 1440},
	}
)

const siteNodes, siteCPUs, siteGPUs = 4, 8, 8

// TestSlurmAgrees compares with a real slurmctld and slurmdbd: with the usage that sshare shows, each user's fair share,
// classic and Fair Tree, is sshare's; and each waiting job's factors and priority are sprio's.
func TestSlurmAgrees(t *testing.T) {
	slurmtest.RequireAccounting(t)
	c := slurmtest.Start(t, slurmtest.Options{
		Nodes: siteNodes, GPUs: siteGPUs, Leaf: -1, Accounting: true,
		Partitions: []string{ // billing weights make seconds of use large numbers, which sshare shows to the unit
			"PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityJobFactor=4 TRESBillingWeights=CPU=100000",
			"PartitionName=small Nodes=ALL MaxTime=INFINITE State=UP PriorityJobFactor=10 TRESBillingWeights=CPU=100000",
			"PartitionName=free Nodes=ALL MaxTime=INFINITE State=UP TRESBillingWeights=CPU=0",
		},
		Conf: map[string]string{
			"PriorityType": "priority/multifactor", "PriorityMaxAge": "2", "PriorityDecayHalfLife": "14-0", "PriorityWeightAge": "1000", "PriorityWeightAssoc": "3000",
			"PriorityWeightFairshare": "100000", "PriorityWeightJobSize": "5000", "PriorityWeightPartition": "2000", "PriorityWeightQOS": "10000",
			"PriorityWeightTRES": "CPU=700,GRES/gpu=1300",
		},
	})
	site(c)
	var runs []string
	for _, u := range siteUsers {
		for _, r := range u.runs {
			on, cpus, _ := strings.Cut(r, " ")
			id := c.Submit("sleep 600", "--uid="+u.name, "--account="+u.account, "--output=/dev/null", "--nodelist="+on, "--ntasks-per-node="+cpus)
			c.WaitJob(id, "RUNNING", 20*time.Second)
			runs = append(runs, id)
		}
	}
	c.Reconfigure(nil) // what they have used is written down
	c.Run("scancel", runs...)
	// From now on nobody uses anything: a slurmctld that starts would mix what it had saved with what ran since.
	c.WaitJob(c.Submit("sleep 600", "--partition=free", "--exclusive", "--nodes="+strconv.Itoa(siteNodes), "--output=/dev/null"), "RUNNING", 40*time.Second)
	ids := make([]string, len(siteJobs))
	for i, j := range siteJobs {
		args := []string{"--uid=" + j.user, "--account=" + j.account, "--partition=" + j.partition, "--qos=" + j.qos, "--output=/dev/null",
			fmt.Sprint("--nodes=", j.nodes), fmt.Sprint("--ntasks-per-node=", j.perNode), fmt.Sprint("--nice=", j.nice), fmt.Sprint("--time=", j.minutes)}
		if j.gpus > 0 {
			args = append(args, fmt.Sprint("--gres=gpu:", j.gpus))
		}
		ids[i] = c.Submit("true", args...)
	}
	since := make([]int64, len(ids))
	for i, id := range ids {
		since[i] = accrues(t, c, id)
	}
	for _, flags := range []string{"", "SMALL_RELATIVE_TO_TIME", "NO_FAIR_TREE", "NO_FAIR_TREE,ACCRUE_ALWAYS"} {
		t.Run("flags "+flags, func(t *testing.T) {
			conf := map[string]string{"PriorityFlags": flags, "PriorityFavorSmall": "NO"}
			if flags == "NO_FAIR_TREE,ACCRUE_ALWAYS" {
				conf["PriorityFavorSmall"], conf["FairShareDampeningFactor"] = "YES", "3"
			}
			c := c.With(t)
			earliest := time.Now().Unix()
			c.Reconfigure(conf)
			compare(t, c, ids, since, flags, conf, earliest)
		})
	}
}

// site makes the accounts, users and QOS.
func site(c *slurmtest.Cluster) {
	add := func(args ...string) { c.Run("sacctmgr", append([]string{"--immediate", "--quiet"}, args...)...) }
	for name, priority := range map[string]int{"low": 5, "normal": 20, "high": 50} {
		if name == "normal" { // Slurm's own
			add("modify", "qos", "normal", "set", fmt.Sprint("priority=", priority))
			continue
		}
		add("add", "qos", name, fmt.Sprint("priority=", priority))
	}
	for _, a := range siteAccounts {
		add("add", "account", a.name, "parent="+a.parent, fmt.Sprint("fairshare=", a.shares))
	}
	for _, u := range siteUsers {
		share := strconv.Itoa(u.shares)
		if u.shares == quota.ShareParent {
			share = "parent"
		}
		args := []string{"add", "user", u.name, "account=" + u.account, "fairshare=" + share, "qos=low,normal,high"}
		if u.priority > 0 {
			args = append(args, fmt.Sprint("priority=", u.priority))
		}
		add(args...)
	}
}

// compare holds the queue's numbers to Slurm's, which were worked out at some time since earliest. The jobs of those ids
// accrue age since the seconds given.
func compare(t *testing.T, c *slurmtest.Cluster, ids []string, since []int64, flags string, conf map[string]string, earliest int64) {
	billed := usage(t, c)
	fair := table(c.Run("sshare", "--all", "--long", "--parsable2", "--noheader", "--format=Account,User,FairShare"), "|")
	prio := table(c.Run("sprio", "--noheader", "--format=%i|%Y|%a|%b|%f|%j|%p|%q|%t"), "|")
	latest := time.Now().Unix()

	specs := []quota.Spec{{Name: "root", Parent: "root", User: true, Shares: 1}} // sacctmgr makes that user
	assoc := map[string]Limits{}
	for _, a := range siteAccounts {
		specs = append(specs, quota.Spec{Name: a.name, Parent: a.parent, Shares: a.shares})
	}
	for _, u := range siteUsers {
		specs = append(specs, quota.Spec{Name: u.name, Parent: u.account, User: true, Shares: u.shares})
		if u.priority > 0 {
			l := NoLimits()
			l.Priority = u.priority
			assoc[quota.User(u.account, u.name)] = l
		}
	}
	for i := range specs {
		specs[i].Nominal, specs[i].Borrow, specs[i].Lend = quota.None(), quota.None(), quota.None()
	}
	tree, err := quota.NewTree(specs)
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig(siteNodes, siteGPUs, siteCPUs)
	cfg.Weights = Weights{Age: 1000, Assoc: 3000, FairShare: 100000, JobSize: 5000, Partition: 2000, QOS: 10000}
	cfg.Weights.TRES[quota.CPUs], cfg.Weights.TRES[quota.GPUs] = 700, 1300
	cfg.MaxAge, cfg.Assoc = 120, assoc
	cfg.FairTree = !strings.Contains(flags, "NO_FAIR_TREE")
	cfg.Flags.SmallRelativeTime = strings.Contains(flags, "SMALL_RELATIVE_TO_TIME")
	cfg.Flags.FavorSmall = conf["PriorityFavorSmall"] == "YES"
	if d, ok := conf["FairShareDampeningFactor"]; ok {
		cfg.Damp, _ = strconv.ParseFloat(d, 64)
	}
	total := cfg.Partitions[0].Total
	cfg.Partitions = []Partition{{Name: "gpu", JobFactor: 4, Total: total}, {Name: "small", JobFactor: 10, Total: total}}
	cfg.QOS = nil
	for name, p := range map[string]int{"low": 5, "normal": 20, "high": 50} {
		cfg.QOS = append(cfg.QOS, QOS{Name: name, Priority: p, UsageFactor: 1, Limits: NoLimits()})
	}
	q, err := New(cfg, tree, earliest)
	if err != nil {
		t.Fatal(err)
	}
	if billed["root"] < 1e6 || billed["c/lp"] != 0 {
		t.Fatalf("the usage is not what the test is about: %v", billed)
	}
	q.Resume(Usage{At: earliest, Billed: billed})
	got := q.fairShare()
	users := 0
	for _, row := range fair {
		if row[1] == "" && cfg.FairTree {
			continue // accounts have none
		}
		id, ok := tree.Find(tableName(row))
		if !ok {
			t.Fatalf("sshare shows %v, which is not ours", row)
		}
		users++
		if id == quota.Root {
			continue
		}
		if want := number(t, row[2]); math.Abs(got[id]-want) > 2e-6 {
			t.Errorf("fair share of %s: %.6f, and by sshare %.6f", tableName(row), got[id], want)
		}
	}
	if users < len(siteUsers)+1 {
		t.Errorf("only %d lines of sshare were compared: %v", users, fair)
	}

	for i, j := range siteJobs {
		id, _ := strconv.ParseInt(ids[i], 10, 64)
		job := Job{ID: id, User: j.user, Account: j.account, Partition: j.partition, QOS: j.qos, Nodes: j.nodes, GPUsPerNode: j.gpus, CPUsPerNode: j.perNode,
			Limit: j.minutes * 60, Nice: j.nice}
		if err := q.Submit(job, since[i]); err != nil {
			t.Fatal(err)
		}
		q.Job(id).Accrue = since[i]
	}
	byID := map[string][]string{}
	for _, row := range prio {
		byID[row[0]] = row
	}
	if len(byID) < len(ids) {
		t.Fatalf("sprio shows %d jobs of %d: %v", len(byID), len(ids), prio)
	}
	for i, id := range ids {
		n, _ := strconv.ParseInt(id, 10, 64)
		row := byID[id]
		// The age is of when Slurm looked, within these bounds; the rest does not move.
		age := number(t, row[2])
		young, old := q.Factors(n, earliest).Age, q.Factors(n, latest).Age
		if age < young-1e-6 || age > old+1e-6 || age == 0 {
			t.Errorf("job %s: age %.6f, ours between %.6f and %.6f", id, age, young, old)
		}
		at := since[i] + int64(math.Round(age*float64(cfg.MaxAge)))
		f := q.Factors(n, at)
		for _, x := range []struct {
			name      string
			got, want float64
		}{
			{"association", f.Assoc, number(t, row[3])}, {"fair share", f.FairShare, number(t, row[4])}, {"job size", f.JobSize, number(t, row[5])},
			{"partition", f.Partition, number(t, row[6])}, {"QOS", f.QOS, number(t, row[7])},
		} {
			if math.Abs(x.got-x.want) > 2e-6 {
				t.Errorf("job %s of %s: %s %.6f, and by sprio %.6f", id, siteJobs[i].user, x.name, x.got, x.want)
			}
		}
		cpu, gpu := tres(row[8])
		if math.Abs(f.TRES[quota.CPUs]-cpu) > .00501 || math.Abs(f.TRES[quota.GPUs]-gpu) > .00501 { // sprio has two digits
			t.Errorf("job %s: of all CPUs %.3f and GPUs %.3f, and by sprio %s", id, f.TRES[quota.CPUs], f.TRES[quota.GPUs], row[8])
		}
		if want, _ := strconv.ParseUint(row[1], 10, 32); q.Key(n, at).Priority != uint32(want) {
			t.Errorf("job %s of %s: priority %d, and by sprio %d; %+v", id, siteJobs[i].user, q.Key(n, at).Priority, want, f)
		}
	}
	if t.Failed() {
		t.Logf("sshare:\n%v\nsprio:\n%v\nusage %v", fair, prio, billed)
	}
}

// usage is what accounts and users have used, by the names of our tree.
func usage(t *testing.T, c *slurmtest.Cluster) map[string]float64 {
	used := map[string]float64{}
	for _, row := range table(c.Run("sshare", "--all", "--long", "--parsable2", "--noheader", "--format=Account,User,RawUsage"), "|") {
		used[tableName(row)] = number(t, row[2])
	}
	return used
}

// table is a command's output, cut into lines and fields.
func table(out, sep string) [][]string {
	var rows [][]string
	for line := range strings.Lines(out) {
		row := strings.Split(strings.TrimRight(line, "\n"), sep)
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		rows = append(rows, row)
	}
	return rows
}

// tableName is the account or user of a line of sshare, as a tree names it.
func tableName(row []string) string {
	if row[1] == "" {
		return row[0]
	}
	return quota.User(row[0], row[1])
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	if s == "" {
		return 0
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// tres are the parts of CPUs and GPUs in what sprio %t writes: cpu=0.25,gres/gpu=0.25.
func tres(s string) (cpu, gpu float64) {
	for part := range strings.SplitSeq(s, ",") {
		name, v, _ := strings.Cut(part, "=")
		x, _ := strconv.ParseFloat(v, 64)
		switch strings.ToLower(name) {
		case "cpu":
			cpu = x
		case "gres/gpu":
			gpu = x
		}
	}
	return cpu, gpu
}

// accrues is since when a job's age counts by Slurm, which says so at its next look at the queue.
func accrues(t *testing.T, c *slurmtest.Cluster, id string) int64 {
	t.Helper()
	for deadline := time.Now().Add(40 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		_, rest, _ := strings.Cut(c.Run("scontrol", "show", "job", id), "AccrueTime=")
		text, _, _ := strings.Cut(rest, "\n")
		at, err := time.Parse("2006-01-02T15:04:05", text)
		if err == nil {
			return at.Unix()
		}
		if time.Now().After(deadline) {
			t.Fatalf("job %s has no accrue time: %v", id, err)
		}
	}
}
