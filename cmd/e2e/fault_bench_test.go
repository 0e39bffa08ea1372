package e2e

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// What the way of a fault is to take, and how often it is measured.
const (
	faultRuns  = 500
	revokeGoal = 300 * time.Millisecond
	drainGoal  = 1500 * time.Millisecond
)

// faultPolicy takes every cap off: eight nodes are to fail five hundred times in a few minutes. Each line of the kernel log
// is an incident of its own, and a case that was closed a second ago is forgotten. All else is as built in, the intervals
// too: what is measured must not depend on a quick background cycle.
const faultPolicy = `mode: act
guard:
  fleet_hour_share: 1
  fleet_day_share: 1
  fleet_hour_max: 1000000
  leaf_hour_share: 1
  reason_hour_share: 1
  storm_nodes: 1000000
  hard_page_share: 1
agent:
  incident_gap: 0s
  incident_cause: 0s
lifecycle:
  repeat_window: 1s
  reboots_per_day: 1000000
`

// faultCodes are XIDs that are hard faults and mended by a GPU reset, the quickest rung there is. A repetition takes the
// next GPU of its node and, after the eighth, the next code, for the agent tells a fault that repeats only once a minute.
var faultCodes = []int{119, 95, 46, 62, 109, 110, 120, 140, 143, 158, 169, 136}

// BenchmarkFault measures the way of a fault from end to end on a real Slurm, the shipped programs and an embedded etcd
// with fsync on: from just before the XID line is written to a node's kernel log until an etcd watch in this process sees
// certs/NODE deleted, and until slurmctld has logged (to the millisecond, by the same clock) that the node is DRAINED. The
// node is then left to itself: evidence, reset, standard screen, new certificate, resume. The next repetition takes the
// node that has been well again for the longest, so up to seven others are on their way back, as real work on the side.
func BenchmarkFault(b *testing.B) {
	for b.Loop() {
		benchmarkFault(b)
	}
}

func benchmarkFault(b *testing.B) {
	machine(b)
	s := start(b, options{policy: policyOf{whole: faultPolicy}})
	s.adopt()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Minute)
	defer cancel()
	endpoint := "unix://" + filepath.Join(s.dir, "assayd", "etcd", "etcd.sock")
	put := putTimes(b, endpoint)

	st, err := store.Open(ctx, store.Config{Endpoints: []string{endpoint}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	revoked := make(chan sight, 64)
	go watchRevocations(ctx, st, revision(b, st), revoked)
	drained := make(chan sight, 64)
	go watchDrains(ctx, filepath.Join(s.cluster.Dir, "log", "slurmctld.log"), drained)

	api := client.Unix(s.Socket("assayd"))
	defer api.Close()
	var queue []string // nodes that are well, longest first
	runs := map[string]int{}
	var revoke, drain times
	for len(drain) < faultRuns {
		queue = nextWell(ctx, b, api, queue)
		node := queue[0]
		queue = queue[1:]
		i := runs[node]
		runs[node]++
		begun := time.Now()
		if err := sim.XID(s.Hardware(node), i%8, faultCodes[i/8%len(faultCodes)], ""); err != nil {
			b.Fatal(err)
		}
		revoke = append(revoke, await(ctx, b, revoked, node, "revoked").Sub(begun))
		drain = append(drain, await(ctx, b, drained, node, "drained in Slurm").Sub(begun))
	}
	for node, n := range runs {
		if got := len(slices.DeleteFunc(s.updates(node), func(u string) bool { return !strings.Contains(u, "state set to DRAIN") })); got != n {
			b.Errorf("%s: %d faults and %d drains in slurmctld's log", node, n, got)
		}
	}

	s.Control("assayd").Kill(9) // alone with Slurm now
	update := updateTimes(s)
	machine(b)
	revoke.report(b, "revoke")
	drain.report(b, "drain")
	b.Logf("fault line to certificate revoked in etcd: %v", revoke)
	b.Logf("fault line to node drained in Slurm:       %v", drain)
	b.Logf("one put in the same etcd (fsync on):       %v; revoked is %.0f times that by p50", put, ratio(revoke, put))
	b.Logf("scontrol update alone, whole process:      %v; drained is %.1f times that by p50", update, ratio(drain, update))
	b.Logf("the last hundred against the first:        revoked %.2f, drained %.2f times by p50",
		ratio(revoke[len(revoke)-100:], revoke[:100]), ratio(drain[len(drain)-100:], drain[:100]))
	verdict(b, "fault line to certificate revoked in etcd, p99", revoke.at(0.99).Seconds()*1000, float64(revokeGoal.Milliseconds()), "ms")
	verdict(b, "fault line to node drained in real Slurm, p99", drain.at(0.99).Seconds()*1000, float64(drainGoal.Milliseconds()), "ms")
}

func ratio(a, of times) float64 { return float64(a.at(0.5)) / float64(of.at(0.5)) }

// A sight is when something was seen of a node.
type sight struct {
	node string
	at   time.Time
}

// await gives the time of the node's next sight; those of other nodes belong to no repetition and are an error.
func await(ctx context.Context, b *testing.B, c <-chan sight, node, what string) time.Time {
	b.Helper()
	select {
	case got := <-c:
		if got.node != node {
			b.Fatalf("waiting for %s to be %s: %s was", node, what, got.node)
		}
		return got.at
	case <-time.After(limit):
		b.Fatalf("%s is not %s within %v", node, what, limit)
	case <-ctx.Done():
		b.Fatal(context.Cause(ctx))
	}
	return time.Time{}
}

func revision(b *testing.B, st *store.Store) int64 {
	b.Helper()
	_, rev, err := st.List(b.Context(), "certs/")
	if err != nil {
		b.Fatal(err)
	}
	return rev
}

// watchRevocations sends each deletion of a certificate after revision rev.
func watchRevocations(ctx context.Context, st *store.Store, rev int64, out chan<- sight) {
	for evs := range st.Watch(ctx, "certs/", rev+1).C {
		now := time.Now()
		for _, ev := range evs {
			if node, ok := strings.CutPrefix(ev.Key, "certs/"); ok && ev.Deleted {
				out <- sight{node, now}
			}
		}
	}
}

// watchDrains sends each drain that slurmctld logs from now on, with the log's own time.
func watchDrains(ctx context.Context, file string, out chan<- sight) {
	f, err := os.Open(file)
	if err != nil {
		return // the wait for the first drain says so
	}
	defer f.Close()
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return
	}
	r := bufio.NewReader(f)
	line := ""
	for ctx.Err() == nil {
		part, err := r.ReadString('\n')
		line += part
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if s, ok := parseDrain(line); ok {
			out <- s
		}
		line = ""
	}
}

// parseDrain reads a line such as "[2026-11-29T20:11:03.123] update_node: node gpu003 state set to DRAINED".
func parseDrain(line string) (sight, bool) {
	stamp, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "] update_node: node ")
	node, what, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 || !strings.HasPrefix(what, "state set to DRAIN") {
		return sight{}, false
	}
	at, err := time.ParseInLocation("2006-01-02T15:04:05.000", stamp, time.Local)
	return sight{node, at}, err == nil
}

// nextWell waits until at least one node is well, and adds those that have become so to the queue.
func nextWell(ctx context.Context, b *testing.B, api *client.Client, queue []string) []string {
	b.Helper()
	deadline := time.Now().Add(limit)
	for {
		ns, err := api.Nodes(ctx, "")
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range ns {
			if healthy(n) && !slices.Contains(queue, n.Name) && inService(n) {
				queue = append(queue, n.Name)
			}
		}
		if len(queue) > 0 {
			return queue
		}
		if time.Now().After(deadline) {
			b.Fatalf("no node became well again within %v: %+v", limit, ns[0])
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// inService is a node that Slurm shows without a drain, after the resume.
func inService(n wire.Node) bool { return n.Slurm != nil && !strings.Contains(n.Slurm.State, "DRAIN") }

// putTimes is what the least that etcd can do takes: a put of one key, on disk before it is answered.
func putTimes(b *testing.B, endpoint string) (ts times) {
	b.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	value := strings.Repeat("x", 1024)
	for range 200 {
		begun := time.Now()
		if _, err := c.Put(b.Context(), "/bench/put", value); err != nil {
			b.Fatal(err)
		}
		ts = append(ts, time.Since(begun))
	}
	return ts
}

// updateTimes is what one drain takes by hand, with nobody else asking slurmctld for anything.
func updateTimes(s *site) (ts times) {
	node := s.cluster.Nodes[0]
	for range 50 {
		begun := time.Now()
		s.cluster.Run("scontrol", "update", "nodename="+node, "state=drain", "reason=bench")
		ts = append(ts, time.Since(begun))
		s.cluster.Run("scontrol", "update", "nodename="+node, "state=resume")
	}
	return ts
}
