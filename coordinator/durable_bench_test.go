package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// slurmMix is how many gangs of each size, in nodes, the comparison with Slurm submits: 1,217 gangs, 7,936 nodes.
var slurmMix = []struct{ gangs, nodes int }{{600, 1}, {200, 2}, {150, 4}, {120, 8}, {80, 16}, {40, 32}, {16, 64}, {8, 128}, {3, 256}}

// BenchmarkDurableGangs submits the mix as one batch to a fleet of 10,000 nodes and waits until every gang is reserved: its
// plan and its place are durable in an embedded etcd with fsync. Beside it, in the same run and on the same etcd, are
// sequential Puts of a kilobyte, by one client that waits for each.
//
// With ASSAY_BATCH naming a program the batch goes through `assay job submit --batch` as a process of its own; ASSAY_TOPOLOGY
// names the topology.conf, else leaves are of 20 nodes.
func BenchmarkDurableGangs(b *testing.B) {
	names, tree := benchFleet(b)
	srv, err := etcd()
	if err != nil {
		b.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: srv.Endpoints, DialTimeout: 5 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	for b.Loop() {
		prefix := fmt.Sprintf("durable%d/", rand.Uint64())
		record := certifiedRecord(b)
		for at := 0; at < len(names); at += 100 {
			var ops []clientv3.Op
			for i, name := range names[at:min(at+100, len(names))] {
				ops = append(ops, clientv3.OpPut(prefix+keyNodes+name, record(at+i, name)))
			}
			if _, err := client.Txn(b.Context()).Then(ops...).Commit(); err != nil {
				b.Fatal(err)
			}
		}
		s := startSiteWith(b, newPlant(), prefix, nil, func(c *Config) { c.Slurm, c.Topology = nil, tree })
		sock := serveUnix(b, s)
		for waited := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if _, err := s.coord.Fleet(b.Context()); err == nil {
				break
			} else if time.Since(waited) > 3*time.Minute {
				b.Fatal(err)
			}
		}
		// The planner takes in the fleet and the user: a fleet in use has done so long before.
		first := s.submit(wire.JobAsk{Gang: scheduler.Gang{Nodes: 1}})
		s.await(first.ID, "its place", func(j wire.Job) bool { return j.Launches > 0 })
		already := s.launched(b)

		began, user := time.Now(), cpuTime(b)
		submitMix(b, s, sock)
		submitted := time.Since(began)
		gangs := 0
		for _, m := range slurmMix {
			gangs += m.gangs
		}
		for s.launched(b) < gangs+already {
			if time.Since(began) > 5*time.Minute {
				b.Fatalf("%d of %d gangs reserved after five minutes", s.launched(b), gangs)
			}
			time.Sleep(2 * time.Millisecond)
		}
		took, used := time.Since(began), cpuTime(b)-user
		s.stop()

		value, puts := strings.Repeat("x", 1024), 0
		from := time.Now()
		for ; time.Since(from) < 3*time.Second; puts++ {
			if _, err := client.Put(b.Context(), prefix+"put", value); err != nil {
				b.Fatal(err)
			}
		}
		rate, put := float64(gangs)/took.Seconds(), float64(puts)/time.Since(from).Seconds()
		b.ReportMetric(rate, "gangs/s")
		b.ReportMetric(float64(gangs)/submitted.Seconds(), "submitted/s")
		b.ReportMetric(put, "puts/s")
		b.ReportMetric(rate/put, "gangs/put")
		b.ReportMetric(float64(used.Microseconds())/float64(gangs), "cpu-us/gang")
		if _, err := client.Delete(b.Context(), prefix, clientv3.WithPrefix()); err != nil {
			b.Fatal(err)
		}
	}
}

// benchFleet is the names of 10,000 nodes and their topology.
func benchFleet(b testing.TB) ([]string, string) {
	if file := os.Getenv("ASSAY_TOPOLOGY"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		t, faults := topo.Parse(string(text), nil)
		if t == nil {
			b.Fatal(faults)
		}
		return t.Nodes, string(text)
	}
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprintf("gpu%05d", i+1))
	}
	return names, ""
}

// certifiedRecord makes the stored record of a node that is certified for a day.
func certifiedRecord(b testing.TB) func(i int, name string) string {
	s := gangSiteFor(b)
	s.adopt("gpu001")
	e, err := s.reader().Get(b.Context(), keyNodes+"gpu001")
	if err != nil {
		b.Fatal(err)
	}
	s.stop()
	return func(i int, name string) string {
		var n lifecycle.Node
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(e.Value), "gpu001", name)), &n); err != nil {
			b.Fatal(err)
		}
		n.Leaf = fmt.Sprintf("s%03d", i/20)
		n.Certificate.Serial, n.Certificate.Expires = uint64(i+1), n.Certificate.IssuedAt.Add(24*time.Hour)
		n.Certificate.Level = checks.Standard
		out, err := json.Marshal(n)
		if err != nil {
			b.Fatal(err)
		}
		return string(out)
	}
}

// launched is how many gangs have their place for good.
func (s *site) launched(b *testing.B) (n int) {
	err := s.coord.read(func(_ *lead, st *state, _ time.Time) error { n = len(st.launches); return nil })
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func gangSiteFor(b testing.TB) *site {
	return startSiteWith(b, newPlant("gpu001"), fmt.Sprintf("record%d/", rand.Uint64()), nil, func(c *Config) { c.Slurm = nil })
}

func serveUnix(b *testing.B, s *site) string {
	dir, err := os.MkdirTemp("", "assay")
	if err != nil {
		b.Fatal(err)
	}
	sock := filepath.Join(dir, "s")
	ln, err := api.ListenUnix(b.Context(), sock)
	if err != nil {
		b.Fatal(err)
	}
	c := s.coord
	server := api.New(api.Backend{Agents: c, Fleet: c, Operators: c, Enroller: c, Policies: c, Guarder: c, History: c, Leadership: c, Jobs: c, Rules: c}, c.Metrics(), quietLog())
	go func() { _ = server.ServeUnix(ln) }()
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
		_ = os.RemoveAll(dir)
	})
	return sock
}

// submitMix submits the mix, shuffled by a seed, as one batch.
func submitMix(b *testing.B, s *site, sock string) {
	var sizes []int
	for _, m := range slurmMix {
		for range m.gangs {
			sizes = append(sizes, m.nodes)
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(sizes), func(i, k int) { sizes[i], sizes[k] = sizes[k], sizes[i] })
	if program := os.Getenv("ASSAY_BATCH"); program != "" {
		dir := b.TempDir()
		script := filepath.Join(dir, "job.sh")
		if err := os.WriteFile(script, []byte("#!/bin/sh\ntrue\n"), 0o755); err != nil {
			b.Fatal(err)
		}
		var lines strings.Builder
		for _, n := range sizes {
			fmt.Fprintf(&lines, "--nodes=%d --exclusive --time=60 %s\n", n, script)
		}
		cmd := exec.CommandContext(b.Context(), program, "--socket", sock, "job", "submit", "--batch", "-")
		cmd.Stdin = strings.NewReader(lines.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return
	}
	batch := wire.Batch{Key: "bench", Scripts: []string{"#!/bin/sh\ntrue\n"}}
	for i, n := range sizes {
		ask := wire.JobAsk{Name: "mix"}
		ask.Gang.Nodes, ask.Gang.Whole, ask.Gang.Limit = n, true, time.Hour
		batch.Jobs = append(batch.Jobs, wire.BatchJob{Line: i + 1, Ask: ask})
	}
	answers, err := s.coord.SubmitJobs(b.Context(), "alice", batch)
	if err != nil {
		b.Fatal(err)
	}
	for _, a := range answers {
		if a.Error != "" {
			b.Fatal(a.Error)
		}
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
