package coordinator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/rules"
)

func (s *site) rules(f rules.File) {
	s.t.Helper()
	s.try("rules", func(ctx context.Context) error { _, err := s.coord.SetRules(ctx, "root", f); return err })
}

func (s *site) submitAs(user string, ask wire.JobAsk) (wire.Job, error) {
	ask.Script = "#!/bin/sh\ntrue\n"
	if ask.Gang.Nodes == 0 {
		ask.Gang.Nodes = 1
	}
	return s.coord.SubmitJob(context.Background(), user, ask)
}

func ptr[T any](v T) *T { return &v }

// Partitions, QOS and accounts hold at the door and in the planner, and each refusal names numbers.
func TestRulesHold(t *testing.T) {
	s := gangSite(t, "gpu001", "gpu002", "gpu003", "gpu004")
	playRanks(s, []string{"gpu001", "gpu002", "gpu003", "gpu004"}, patient)
	s.rules(rules.File{
		QOS: []rules.QOS{{Name: "high", Priority: 100, Limits: rules.Limits{PerUser: "gpu=8", MaxSubmit: ptr(3)}}},
		Accounts: []rules.Account{{Name: "science", Nominal: "node=3", Borrow: "node=0"}, {Name: "physics", Parent: "science", Users: []rules.User{{Name: "ann"}, {Name: "bob", Share: 3}}},
			{Name: "open", Default: true}},
		Partitions: []rules.Partition{{Name: "main", Default: true}, {Name: "last", Nodes: "gpu[003-004]", MaxNodes: 1, AllowAccts: []string{"science"}, MaxTime: 3600}},
	})
	for _, tt := range []struct {
		who, want string
		ask       wire.JobAsk
	}{
		{"carol", "carol may not use account physics", wire.JobAsk{Account: "physics"}},
		{"ann", `there is no partition "debug"; there are last, main`, wire.JobAsk{Partition: "debug"}},
		{"ann", `there is no QOS "low"`, wire.JobAsk{QOS: "low"}},
		{"carol", "partition last does not take account open", wire.JobAsk{Partition: "last"}},
		{"ann", `no reservation "course" that ann may use`, wire.JobAsk{Reservation: "course"}},
	} {
		if _, err := s.submitAs(tt.who, tt.ask); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s asks %+v: %v, want it refused: %s", tt.who, tt.ask, err, tt.want)
		}
	}
	first, err := s.submitAs("ann", wire.JobAsk{Partition: "last", QOS: "high"})
	if err != nil {
		t.Fatal(err)
	}
	if j := s.await(first.ID, "its start", inState(jobRunning)); j.Account != "physics" || j.Nodes != "gpu003" {
		t.Errorf("%+v: want it charged to physics, on a node of partition last", j)
	}
	second, err := s.submitAs("ann", wire.JobAsk{QOS: "high"})
	if err != nil {
		t.Fatal(err)
	}
	s.await(second.ID, "its limit", func(j wire.Job) bool {
		return j.Code == "QOSMaxGRESPerUser" && strings.Contains(j.Reason, "lets a user hold 8 and ann holds 8")
	})
	if _, err := s.submitAs("ann", wire.JobAsk{QOS: "high"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.submitAs("ann", wire.JobAsk{QOS: "high"}); err == nil || !strings.Contains(err.Error(), "lets a user have 3 jobs in the queue; ann has 3") {
		t.Errorf("a fourth job: %v", err)
	}
	wide, err := s.submitAs("bob", wire.JobAsk{Gang: scheduler.Gang{Nodes: 3}})
	if err != nil {
		t.Fatal(err)
	}
	s.await(wide.ID, "its account's quota", func(j wire.Job) bool { return j.Code == "AssocQuota" && strings.Contains(j.Reason, "can still take 2") })
	if _, err := s.coord.DropRule(t.Context(), "root", "qos", "high"); err == nil || !strings.Contains(err.Error(), "QOS high would be gone") {
		t.Errorf("QOS of waiting jobs deleted: %v", err)
	}
	if _, err := s.coord.SetRules(t.Context(), "root", rules.File{Partitions: []rules.Partition{{Name: "a b", QOS: "none", State: "asleep"}}}); err == nil ||
		!strings.Contains(err.Error(), "asleep") || !strings.Contains(err.Error(), `"a b"`) {
		t.Errorf("a record with faults: %v, want each named", err)
	}
	kept, err := s.coord.PlanJob(t.Context(), "bob", wire.JobAsk{Gang: scheduler.Gang{Nodes: 1}}, true)
	if err != nil || kept.Question == nil {
		t.Fatalf("a dry run to be kept: %+v, %v", kept, err)
	}
	if snap, g, err := kept.Question.Load(); err != nil {
		t.Error(err)
	} else if again := describePlan(snap, g); again.Nodes != kept.Nodes || again.Refused != kept.Refused {
		t.Errorf("asked again: %+v, was %+v", again, kept)
	}
	plan, err := s.coord.PlanJob(t.Context(), "ann", wire.JobAsk{QOS: "high", Gang: scheduler.Gang{Nodes: 1}}, false)
	if err != nil || !strings.Contains(plan.Refused, "ann has 3 (QOSMaxSubmitJobPerUserLimit)") {
		t.Errorf("dry run %+v, %v: want the limit", plan, err)
	}
	as, err := s.coord.Accounts(t.Context())
	if err != nil || len(as) < 3 {
		t.Errorf("accounts %+v, %v", as, err)
	}
}

// Root, who is a user like others though the tree's root has his name, may submit.
func TestRootSubmits(t *testing.T) {
	s := gangSite(t, "gpu001")
	playRanks(s, []string{"gpu001"}, patient)
	j, err := s.submitAs("root", wire.JobAsk{})
	if err != nil {
		t.Fatal(err)
	}
	s.await(j.ID, "its start", inState(jobRunning))
}

// A maintenance window keeps jobs off that would run into it; a reservation lets in those that name it.
func TestReservationsHold(t *testing.T) {
	s := gangSite(t, "gpu001", "gpu002")
	playRanks(s, []string{"gpu001", "gpu002"}, patient)
	s.rules(rules.File{Reservations: []rules.Reservation{
		{Name: "course", Nodes: "gpu001", Start: time.Now().Add(-time.Minute), Duration: 3600, Users: []string{"ann"}},
		{Name: "cooling", Nodes: "gpu002", Start: time.Now().Add(30 * time.Minute), Duration: 3600, Maint: true},
	}})
	in, err := s.submitAs("ann", wire.JobAsk{Reservation: "course", Gang: scheduler.Gang{Nodes: 1, Limit: 20 * time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	if j := s.await(in.ID, "its start", inState(jobRunning)); j.Nodes != "gpu001" {
		t.Errorf("runs on %s, want its reservation's gpu001", j.Nodes)
	}
	long, err := s.submitAs("bob", wire.JobAsk{Gang: scheduler.Gang{Nodes: 1, Limit: 2 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	s.await(long.ID, "a reason", func(j wire.Job) bool { return j.Reason != "" && j.State == jobPending })
	short, err := s.submitAs("bob", wire.JobAsk{Gang: scheduler.Gang{Nodes: 1, Limit: 10 * time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	if j := s.await(short.ID, "its start", inState(jobRunning)); j.Nodes != "gpu002" {
		t.Errorf("runs on %s, want gpu002 until the maintenance", j.Nodes)
	}
}

// An array is one order and many jobs: so many at once, each told its index, and another job waits for them all.
func TestAnArrayRuns(t *testing.T) {
	s := gangSite(t, "gpu001", "gpu002", "gpu003")
	tasks := make(chan string, 20)
	playRanks(s, []string{"gpu001", "gpu002", "gpu003"}, func(o wire.GangOrder, node string) []wire.GangStatus {
		if o.Phase == wire.GangGo {
			for _, e := range o.Env {
				if v, ok := strings.CutPrefix(e, "SLURM_ARRAY_TASK_ID="); ok {
					tasks <- v + " " + o.Output
				}
			}
		}
		return obedient(o, node)
	})
	held, err := s.submitAs("ann", wire.JobAsk{Name: "sweep", Array: []int{0, 3, 6, 9}, Throttle: 2, Hold: true, Output: "/tmp/%A_%a.out"})
	if err != nil {
		t.Fatal(err)
	}
	after, err := s.submitAs("ann", wire.JobAsk{Name: "collect", After: fmt.Sprintf("afterok:%d", held.ID)})
	if err != nil {
		t.Fatal(err)
	}
	s.await(after.ID, "its dependency", func(j wire.Job) bool { return j.Code == "Dependency" })
	if len(held.Tasks) != 1 || held.Tasks[jobPending] != 4 {
		t.Errorf("tasks %v, want four that wait", held.Tasks)
	}
	one, err := s.coord.FindJob(t.Context(), fmt.Sprintf("%d_6", held.ID))
	if err != nil || one != held.ID+3 {
		t.Errorf("task 6 is job %d, %v", one, err)
	}
	if _, err := s.coord.OrderJob(t.Context(), "ann", "release", held.ID, wire.JobVerb{}); err != nil {
		t.Fatal(err)
	}
	s.await(after.ID, "its end", inState("COMPLETED"))
	got := map[string]bool{}
	for range 4 {
		got[<-tasks] = true
	}
	for _, k := range []int{0, 3, 6, 9} {
		if want := fmt.Sprintf("%d /tmp/%d_%d.out", k, held.ID, k); !got[want] {
			t.Errorf("no rank ran as %q: %v", want, got)
		}
	}
	if a, err := s.coord.Job(t.Context(), held.ID); err != nil || a.State != "COMPLETED" || a.Tasks["COMPLETED"] != 4 {
		t.Errorf("the array is %+v, %v", a, err)
	}
}

// Tasks to which nothing has happened outlive the leader though no key is theirs; so does what their users have used.
func TestArraysAndUsageOutliveTheLeader(t *testing.T) {
	s := gangSite(t, "gpu001")
	playRanks(s, []string{"gpu001"}, patient)
	a, err := s.submitAs("ann", wire.JobAsk{Name: "sweep", Array: []int{1, 2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	s.await(a.ID+1, "its start", inState(jobRunning))
	time.Sleep(2100 * time.Millisecond) // what is used is counted in seconds
	if _, err := s.coord.OrderJob(t.Context(), "ann", "cancel", a.ID+1, wire.JobVerb{}); err != nil {
		t.Fatal(err)
	}
	s.await(a.ID+1, "its end", inState("CANCELLED"))
	s.stop()
	next := startSiteWith(t, s.plant, t.Name()+"/", nil, func(c *Config) { c.Slurm = nil })
	next.beat("gpu001")
	v := next.await(a.ID, "the array", func(j wire.Job) bool { return len(j.Tasks) > 0 })
	if n := v.Tasks[jobPending] + v.Tasks[jobStarting] + v.Tasks[jobRunning]; n != 2 || v.Tasks["CANCELLED"] != 1 {
		t.Errorf("tasks %v, want one cancelled and two that go on", v.Tasks)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		used := 0.0
		as, _ := next.coord.Accounts(t.Context())
		for _, x := range as {
			if x.User == "ann" {
				used = x.Standing.Billed
			}
		}
		if used >= 8 { // eight GPUs for a second at least
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the new leader thinks ann has used %v GPU seconds: %+v", used, as)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Begin times and deadlines: one job starts when its time has come, one can no longer end in time.
func TestBeginAndDeadline(t *testing.T) {
	s := gangSite(t, "gpu001")
	playRanks(s, []string{"gpu001"}, patient)
	later, err := s.submitAs("ann", wire.JobAsk{Begin: time.Now().Add(3 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	s.await(later.ID, "its begin time", func(j wire.Job) bool { return j.Code == "BeginTime" })
	s.await(later.ID, "its start", inState(jobRunning))
	late, err := s.submitAs("ann", wire.JobAsk{Deadline: time.Now().Add(time.Minute), Gang: scheduler.Gang{Nodes: 1, Limit: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	s.await(late.ID, "its end", inState("DEADLINE"))
}

// A batch is many jobs in few transactions. Sent again it submits what had not been taken; faults are told by line.
func TestABatch(t *testing.T) {
	s := gangSite(t, "gpu001")
	b := wire.Batch{Key: "k1", Scripts: []string{"#!/bin/sh\ntrue\n", "#!/bin/sh\nfalse\n"}, Env: []string{"A=1"}}
	for i := range 300 {
		ask := wire.JobAsk{Name: "b", Hold: true, Gang: scheduler.Gang{Nodes: 1}}
		if i == 150 {
			ask.Partition = "debug"
		}
		b.Jobs = append(b.Jobs, wire.BatchJob{Line: i + 1, Script: i % 2, Ask: ask})
	}
	first, err := s.coord.SubmitJobs(t.Context(), "ann", b)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[int64]bool{}
	for i, a := range first {
		if i == 150 {
			if !strings.Contains(a.Error, `no partition "debug"`) || a.Line != 151 {
				t.Errorf("%+v: want a fault of line 151", a)
			}
			continue
		}
		if a.Error != "" || a.Again || ids[a.ID] {
			t.Fatalf("%+v", a)
		}
		ids[a.ID] = true
	}
	b.Jobs[150].Ask.Partition = ""
	again, err := s.coord.SubmitJobs(t.Context(), "ann", b)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range again {
		if i == 150 {
			if a.Again || a.ID == 0 {
				t.Errorf("%+v: want it taken now", a)
			}
		} else if !a.Again || a.ID != first[i].ID {
			t.Fatalf("%+v, and before %+v: taken twice", a, first[i])
		}
	}
	js, err := s.coord.Jobs(t.Context(), true)
	if err != nil || len(js) != 300 {
		t.Errorf("%d jobs, %v", len(js), err)
	}
	kept, _, err := s.reader().List(t.Context(), keyScripts)
	if err != nil || len(kept) > 20 {
		t.Errorf("%d scripts are stored for two, %v", len(kept), err)
	}
}

// Without backfill nobody passes a job that waits; with it one does that ends before the other can start.
func TestBackfillIsTheSites(t *testing.T) {
	nodes := []string{"gpu001", "gpu002", "gpu003"}
	s := gangSite(t, nodes...)
	playRanks(s, nodes, patient)
	s.rules(rules.File{Priority: &rules.Priority{Backfill: "none"}})
	first := s.submit(wire.JobAsk{Name: "first", Gang: scheduler.Gang{Nodes: 2, Limit: time.Hour}})
	s.await(first.ID, "its start", inState(jobRunning))
	wide := s.submit(wire.JobAsk{Name: "wide", Gang: scheduler.Gang{Nodes: 3, Limit: time.Hour}})
	small := s.submit(wire.JobAsk{Name: "small", Gang: scheduler.Gang{Nodes: 1, Limit: time.Minute}})
	s.await(small.ID, "a reason", func(j wire.Job) bool {
		return j.State == jobPending && strings.Contains(j.Reason, fmt.Sprintf("job %d goes before it, and without backfill nobody passes", wide.ID))
	})
	s.rules(rules.File{Priority: &rules.Priority{}})
	s.await(small.ID, "its start in the hole", inState(jobRunning))
}

// A job that names two partitions starts in the one that has room, is told apart there, and waits in both again when it is
// put back. Neither partition can go while it waits.
func TestAJobOfTwoPartitions(t *testing.T) {
	nodes := []string{"gpu001", "gpu002"}
	s := gangSite(t, nodes...)
	playRanks(s, nodes, patient)
	s.rules(rules.File{Partitions: []rules.Partition{{Name: "fast", Nodes: "gpu001", Tier: 2, Default: true}, {Name: "slow", Nodes: "gpu002"}},
		QOS: []rules.QOS{{Name: "normal", Limits: rules.Limits{MaxSubmit: ptr(3)}}}})
	one := scheduler.Gang{Nodes: 1, Limit: time.Hour}
	first := s.submit(wire.JobAsk{Name: "first", Partition: "fast", Gang: one})
	s.await(first.ID, "its start", inState(jobRunning))
	plan, err := s.coord.PlanJob(t.Context(), "alice", wire.JobAsk{Partition: "fast,slow", Gang: one}, false)
	if err != nil || plan.Nodes != "gpu002" {
		t.Errorf("a dry run: %+v, %v", plan, err)
	}
	both := s.submit(wire.JobAsk{Name: "both", Partition: "fast,slow", Gang: one})
	run := s.await(both.ID, "its start", inState(jobRunning))
	if run.Nodes != "gpu002" || run.Partition != "slow" {
		t.Errorf("it runs on %s in partition %s", run.Nodes, run.Partition)
	}
	waits := s.submit(wire.JobAsk{Name: "waits", Partition: "slow,fast", Gang: one})
	w := s.await(waits.ID, "a reason", func(j wire.Job) bool { return j.State == jobPending && j.Code != "" })
	if w.Partition != "slow,fast" {
		t.Errorf("it waits in %s", w.Partition)
	}
	if _, err := s.submitAs("alice", wire.JobAsk{Partition: "fast,slow"}); err == nil || !strings.Contains(err.Error(), "alice has 3") {
		t.Errorf("a fourth job: %v", err)
	}
	if _, err := s.submitAs("alice", wire.JobAsk{Partition: "fast,debug"}); err == nil || !strings.Contains(err.Error(), `no partition "debug"`) {
		t.Errorf("one partition that is not: %v", err)
	}
	if _, err := s.coord.DropRule(t.Context(), "root", "partition", "fast"); err == nil || !strings.Contains(err.Error(), "partition fast would be gone") {
		t.Errorf("partition fast is deleted: %v", err)
	}
	if err := s.order("requeue", both.ID); err != nil {
		t.Fatal(err)
	}
	s.await(waits.ID, "its turn, or the other's", func(j wire.Job) bool {
		o, err := s.coord.Job(t.Context(), both.ID)
		return err == nil && (j.State == jobRunning) != (o.State == jobRunning) && (j.Partition == "slow,fast" || o.Partition == "fast,slow")
	})
}
