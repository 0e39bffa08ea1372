package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/commit"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// ranks play the launchers of several nodes: each answers its orders as it is told to.
type ranks struct {
	s  *site
	mu sync.Mutex
	// answer says what a node answers to an order of a phase; nothing: silence.
	answer func(o wire.GangOrder, node string) []wire.GangStatus
	went   map[string]bool // nodes that were ordered to go
}

func playRanks(s *site, names []string, answer func(o wire.GangOrder, node string) []wire.GangStatus) *ranks {
	r := &ranks{s: s, answer: answer, went: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	s.t.Cleanup(func() { cancel(); wg.Wait() })
	for _, node := range names {
		wg.Go(func() { r.play(ctx, node) })
	}
	return r
}

func (r *ranks) play(ctx context.Context, node string) {
	var after uint64
	told := map[string]bool{}
	for ctx.Err() == nil {
		wait, stop := context.WithTimeout(ctx, 200*time.Millisecond)
		d, err := r.s.coord.Desired(wait, node, after)
		stop()
		if err != nil {
			if after, told = 0, map[string]bool{}; ctx.Err() == nil { // a new leader has heard nothing
				pause(ctx, 20*time.Millisecond)
			}
			continue
		}
		after = d.Version
		for _, o := range d.Gangs {
			if key := o.Launch + o.Phase; told[key] {
				continue
			} else {
				told[key] = true
			}
			r.mu.Lock()
			if o.Phase == wire.GangGo {
				r.went[node] = true
			}
			answers := r.answer(o, node)
			r.mu.Unlock()
			for _, a := range answers {
				a.Launch, a.Node = o.Launch, node
				if a.Serial == 0 {
					a.Serial = o.Serial
				}
				_ = r.s.coord.GangStatus(ctx, a) // refused when the launch is over, which is no matter
			}
		}
	}
}

func (r *ranks) gone() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sortedKeys(r.went)
}

// obedient runs what it is told, and its ranks end at once.
func obedient(o wire.GangOrder, _ string) []wire.GangStatus {
	switch o.Phase {
	case wire.GangReserve:
		return []wire.GangStatus{{Phase: wire.GangReady}}
	case wire.GangGo:
		var exits []wire.RankExit
		for _, k := range o.Ranks {
			exits = append(exits, wire.RankExit{Rank: k.Rank})
		}
		return []wire.GangStatus{{Phase: wire.GangRunning}, {Phase: wire.GangExited, Exits: exits, Output: []wire.RankOutput{{Rank: o.Ranks[0].Rank, Text: "done\n"}}}}
	}
	return []wire.GangStatus{{Phase: wire.GangExited}}
}

// patient runs what it is told until it is told to stop.
func patient(o wire.GangOrder, node string) []wire.GangStatus {
	if o.Phase == wire.GangGo {
		return []wire.GangStatus{{Phase: wire.GangRunning}}
	}
	return obedient(o, node)
}

// gangSite is a site without Slurm whose nodes are certified.
func gangSite(t *testing.T, names ...string) *site {
	t.Helper()
	s := startSiteWith(t, newPlant(names...), t.Name()+"/", nil, func(c *Config) { c.Slurm = nil })
	for _, n := range names {
		s.adopt(n)
	}
	return s
}

// adopt certifies a node and has its agent be heard.
func (s *site) adopt(node string) {
	s.t.Helper()
	s.certify(node)
	s.beat(node)
}

func (s *site) beat(node string) {
	s.t.Helper()
	s.try("heartbeat", func(ctx context.Context) error {
		return s.coord.Heartbeat(ctx, wire.Heartbeat{Node: node, BootID: s.bootID(node)})
	})
}

func (s *site) submit(ask wire.JobAsk) wire.Job {
	s.t.Helper()
	var j wire.Job
	ask.Script = "#!/bin/sh\ntrue\n"
	s.try("submit", func(ctx context.Context) (err error) { j, err = s.coord.SubmitJob(ctx, "alice", ask); return err })
	return j
}

// await waits until the job is as it should be.
func (s *site) await(id int64, what string, ok func(wire.Job) bool) wire.Job {
	s.t.Helper()
	var j wire.Job
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		got, err := s.coord.Job(context.Background(), id)
		if err == nil {
			if j = got; ok(j) {
				return j
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("job %d: waited in vain for %s; it is %+v", id, what, j)
	return j
}

func inState(state string) func(wire.Job) bool {
	return func(j wire.Job) bool { return j.State == state }
}

func TestAGangRuns(t *testing.T) {
	s := gangSite(t, "gpu001", "gpu002", "gpu003", "gpu004")
	playRanks(s, []string{"gpu001", "gpu002", "gpu003", "gpu004"}, obedient)
	j := s.submit(wire.JobAsk{Name: "train", Gang: scheduler.Gang{Nodes: 3, Ranks: 2}})
	done := s.await(j.ID, "its end", inState("COMPLETED"))
	if done.Nodes != "gpu[001-003]" || done.Exit != 0 || done.Launches != 1 || done.Started.IsZero() || done.Ended.IsZero() || done.User != "alice" {
		t.Errorf("%+v", done)
	}
	logs, err := s.coord.JobLogs(t.Context(), j.ID)
	if err != nil || len(logs.Ranks) != 3 || logs.Ranks[2].Rank != 4 || logs.Ranks[2].Node != "gpu003" {
		t.Errorf("logs %+v, %v: want rank 0, 2 and 4", logs, err)
	}
	left, _, err := s.reader().List(t.Context(), keyGangs)
	if err != nil || len(left) > 0 {
		t.Errorf("%d launches are stored after the end, %v", len(left), err)
	}
}

// Two gangs that do not fit together run one after the other, each whole.
func TestAGangWaitsForRoom(t *testing.T) {
	s := gangSite(t, "gpu001", "gpu002")
	playRanks(s, []string{"gpu001", "gpu002"}, patient)
	first := s.submit(wire.JobAsk{Name: "first", Gang: scheduler.Gang{Nodes: 2, Limit: time.Hour}})
	s.await(first.ID, "its start", inState("RUNNING"))
	second := s.submit(wire.JobAsk{Name: "second", Gang: scheduler.Gang{Nodes: 1, Limit: time.Hour}})
	waits := s.await(second.ID, "a reason", func(j wire.Job) bool { return j.Reason != "" })
	if waits.State != jobPending || !strings.Contains(waits.Reason, "2 are busy") && !strings.Contains(waits.Reason, "gpu") && waits.Planned.IsZero() {
		t.Errorf("%+v: want it to wait, with numbers or a time", waits)
	}
	if _, err := s.coord.OrderJob(t.Context(), "alice", "cancel", first.ID, wire.JobVerb{Reason: "wrong data"}); err != nil {
		t.Fatal(err)
	}
	ended := s.await(first.ID, "its end", inState("CANCELLED"))
	if !strings.Contains(ended.Reason, "cancelled by alice: wrong data") {
		t.Errorf("reason %q", ended.Reason)
	}
	s.await(second.ID, "its start", inState("RUNNING"))
}

// A node that fails its check at the barrier: no user code runs anywhere, and the job waits for another try.
func TestAGangThatFailsAtTheBarrierStartsNowhere(t *testing.T) {
	s := gangSite(t, "gpu001", "gpu002", "gpu003")
	r := playRanks(s, []string{"gpu001", "gpu002", "gpu003"}, func(o wire.GangOrder, node string) []wire.GangStatus {
		if node == "gpu002" && o.Phase == wire.GangReserve {
			return []wire.GangStatus{{Phase: wire.GangRefused, Reason: "xid 79 GPU 3 fell off the bus"}}
		}
		return patient(o, node)
	})
	j := s.submit(wire.JobAsk{Name: "train", Gang: scheduler.Gang{Nodes: 3}})
	back := s.await(j.ID, "its return to the queue", func(j wire.Job) bool { return j.State == jobPending && j.Launches == 1 })
	if went := r.gone(); len(went) > 0 {
		t.Errorf("%v went though a node had refused", went)
	}
	if back.Code != "BeginTime" && !strings.Contains(back.Reason, "gpu002") {
		t.Errorf("%+v: want a back-off, or the node's refusal, as the reason", back)
	}
}

// A certificate that ends between plan and GO: nothing starts on it.
func TestNoGoOnARevokedCertificate(t *testing.T) {
	s := gangSite(t, "gpu001", "gpu002")
	r := playRanks(s, []string{"gpu001", "gpu002"}, func(o wire.GangOrder, node string) []wire.GangStatus {
		if o.Phase != wire.GangReserve || node != "gpu002" {
			return patient(o, node)
		}
		s.report(checks.Report{ID: "fault", Node: node, Why: checks.WhyBackground, Verdict: checks.Fail, Findings: []checks.Finding{{
			Check: "xid", Code: 79, Verdict: checks.Fail, Hard: true, Action: checks.Reboot, Reason: "fell off the bus", Subject: checks.Subject{Kind: checks.KindGPU, Node: node, GPUUUID: "GPU-gpu002-3"},
		}}})
		return []wire.GangStatus{{Phase: wire.GangReady}}
	})
	j := s.submit(wire.JobAsk{Name: "train", Gang: scheduler.Gang{Nodes: 2}})
	s.await(j.ID, "its return to the queue", func(j wire.Job) bool { return j.State == jobPending && j.Launches == 1 })
	if went := r.gone(); len(went) > 0 {
		t.Errorf("%v went on a revoked certificate", went)
	}
}

// A new leader goes on with what the last one had started, and learns from the agents how it stands.
func TestALaunchOutlivesItsLeader(t *testing.T) {
	s := gangSite(t, "gpu001", "gpu002")
	var mu sync.Mutex
	finish := false
	answer := func(o wire.GangOrder, node string) []wire.GangStatus {
		mu.Lock()
		defer mu.Unlock()
		if finish {
			return obedient(o, node)
		}
		return patient(o, node)
	}
	playRanks(s, []string{"gpu001", "gpu002"}, answer)
	j := s.submit(wire.JobAsk{Name: "train", Gang: scheduler.Gang{Nodes: 2, Limit: time.Hour}})
	s.await(j.ID, "its start", inState("RUNNING"))
	s.stop()

	mu.Lock()
	finish = true
	mu.Unlock()
	next := startSiteWith(t, s.plant, t.Name()+"/", nil, func(c *Config) { c.Slurm = nil })
	for _, n := range []string{"gpu001", "gpu002"} {
		next.beat(n)
	}
	playRanks(next, []string{"gpu001", "gpu002"}, answer)
	done := next.await(j.ID, "its end", inState("COMPLETED"))
	if done.Launches != 1 {
		t.Errorf("%d launches: it was started again", done.Launches)
	}
}

func TestJobsAreSlurmsWhereSlurmIs(t *testing.T) {
	s := startSite(t, newPlant("gpu001"), t.Name()+"/", nil)
	s.enrol("gpu001", true)
	_, err := s.coord.SubmitJob(t.Context(), "alice", wire.JobAsk{Script: "true", Gang: scheduler.Gang{Nodes: 1}})
	if err == nil || !strings.Contains(err.Error(), "Slurm") {
		t.Errorf("%v: want the job refused", err)
	}
}

func TestSound(t *testing.T) {
	one := scheduler.Gang{Nodes: 1}
	for _, tt := range []struct {
		name, want string
		ask        wire.JobAsk
		script     string
	}{
		{"no script", "empty", wire.JobAsk{Gang: one}, " \n"},
		{"no node", "nodes", wire.JobAsk{}, "true"},
		{"a relative directory", "working directory", wire.JobAsk{Gang: one, Dir: "data"}, "true"},
		{"nine partitions", "partition", wire.JobAsk{Gang: one, Partition: "a,b,c,d,e,f,g,h,i"}, "true"},
		{"a wish that nobody can keep", "performance class", wire.JobAsk{Gang: scheduler.Gang{Nodes: 1, SameGrade: true}}, "true"},
		{"a priority raised by oneself", "nice", wire.JobAsk{Gang: one, Nice: -1}, "true"},
		{"a variable without a value", "environment", wire.JobAsk{Gang: one, Env: []string{"HOME"}}, "true"},
		{"a huge script", "bytes", wire.JobAsk{Gang: one}, strings.Repeat("#", scriptMost+1)},
		{"two lines of name", "job name", wire.JobAsk{Gang: one, Name: "a\nb"}, "true"},
		{"through without a limit", "through", wire.JobAsk{Gang: scheduler.Gang{Nodes: 1, Through: true}}, "true"},
	} {
		if err := sound(&tt.ask, tt.script); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want it refused for %q", tt.name, err, tt.want)
		}
	}
	ask := wire.JobAsk{Gang: one}
	if err := sound(&ask, "true"); err != nil || ask.Name == "" {
		t.Errorf("%+v, %v: want defaults", ask, err)
	}
}

// A gang of 10,000 nodes is one key within etcd's limit of 1.5 MiB on a request, with room for what goes with it.
func TestALargeGangIsOneKey(t *testing.T) {
	seats := make([]commit.Seat, 10_000)
	for i := range seats {
		seats[i] = commit.Seat{Node: fmt.Sprintf("dgx-h100-%05d", i), GPUs: 0xff, Serial: 1<<40 + uint64(i)}
	}
	l := commit.Begin("123456789.12", 123456789, scheduler.Gang{Ranks: 8, Limit: 24 * time.Hour}, seats, time.Now())
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 1<<20 {
		t.Errorf("%d bytes", len(b))
	}
	x := indexed(l)
	if x.base[10_000] != 80_000 || x.seat["dgx-h100-09999"] != 9_999 || x.list != "dgx-h100-[00000-09999]" {
		t.Errorf("indexed %d ranks, %q", x.base[10_000], x.list)
	}
}

func TestNodesAreListedInRankOrder(t *testing.T) {
	for want, names := range map[string][]string{
		"gpu[001-003]": {"gpu001", "gpu002", "gpu003"}, "gpu003,gpu002": {"gpu003", "gpu002"}, "gpu[001-002,009],gpu[003-004]": {"gpu001", "gpu002", "gpu009", "gpu003", "gpu004"},
	} {
		got := inOrder(names)
		if back, err := hostlist.Expand(got); got != want || err != nil || !slices.Equal(back, names) {
			t.Errorf("%v is written %s, which is %v, %v; want %s", names, got, back, err, want)
		}
	}
}

func TestOldJobsAreForgotten(t *testing.T) {
	jobs := map[int64]job{}
	for id := int64(1); id <= jobsKept+3; id++ {
		jobs[id] = job{Job: wire.Job{ID: id, State: "COMPLETED"}}
	}
	jobs[1] = job{Job: wire.Job{ID: 1, State: jobRunning}}
	if got := oldJobs(jobs); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("forgets %v, want 2 and 3: the oldest that have ended", got)
	}
}

// A stored job that the queue does not take, of an account that is gone, holds up no other, and no leader.
func TestAJobThatCannotBePlannedStopsNoOther(t *testing.T) {
	s := newState()
	for id, account := range map[int64]string{1: "gone", 2: rules.DefaultAccount} {
		ask := wire.JobAsk{Name: "train", Partition: "batch", Account: account, QOS: "normal", Gang: scheduler.Gang{Nodes: 1}}
		s.jobs[id] = newJob(id, entrant{by: "alice", ask: ask}, queue.Dependencies{}, noon, 8)
	}
	p := newPlanner(quietLog())
	if err := p.rebuild(s, "", noon); err != nil {
		t.Fatal(err)
	}
	if got := p.cycle.Queue.Pending(); !slices.Equal(got, []int64{2}) {
		t.Errorf("%v wait, want 2 alone", got)
	}
}
