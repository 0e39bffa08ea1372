package coordinator

import (
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
)

// A gang of 10,000 nodes runs on an etcd with its stock limits (128 operations, 1.5 MiB): reserved, ready, GO, and over, each
// in one transaction, since its key is one. The names are such that no hostlist makes them short.
func TestAGangOfTenThousandNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 10,000 agents")
	}
	const nodes = 10_000
	name := func(i int) string { return fmt.Sprintf("dgx-%05dh100", i*7919%100_003) }
	srv, err := etcd()
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: srv.Endpoints, DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	prefix, record := t.Name()+"/", certifiedRecord(t)
	if _, err := client.Put(t.Context(), prefix+keyGeneration, fmt.Sprintf(`{"schema":%d}`, schema)); err != nil { // nothing to migrate
		t.Fatal(err)
	}
	serial := make(map[string]uint64, nodes)
	for at := 0; at < nodes; at += 100 {
		var ops []clientv3.Op
		for i := at; i < at+100; i++ {
			ops = append(ops, clientv3.OpPut(prefix+keyNodes+name(i), record(i, name(i))))
			serial[name(i)] = uint64(i + 1)
		}
		if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if len(serial) != nodes {
		t.Fatalf("%d names", len(serial))
	}
	s := startSiteWith(t, newPlant(), prefix, nil, func(c *Config) { c.Slurm = nil })
	for waited := time.Now(); ; time.Sleep(20 * time.Millisecond) { // it reads 10,000 nodes first
		if _, err := s.coord.Fleet(t.Context()); err == nil {
			break
		} else if time.Since(waited) > 3*time.Minute {
			t.Fatal(err)
		}
	}
	j := s.submit(wire.JobAsk{Name: "all", Gang: scheduler.Gang{Nodes: nodes, Ranks: 8, Limit: time.Hour, Near: scheduler.Anywhere}})
	began := time.Now()
	reserved := s.await(j.ID, "its nodes", func(j wire.Job) bool { return j.Launch != "" })
	t.Logf("reserved after %s", time.Since(began).Round(time.Millisecond))
	stored, err := client.Get(t.Context(), prefix+keyGangs+reserved.Launch)
	if err != nil || len(stored.Kvs) != 1 {
		t.Fatalf("the gang's key: %v, %v", stored, err)
	}
	t.Logf("its key has %d bytes", len(stored.Kvs[0].Value))

	say := func(phase string) {
		var wg sync.WaitGroup
		todo := make(chan string)
		for range 64 {
			wg.Go(func() {
				for node := range todo {
					if err := s.coord.GangStatus(t.Context(), wire.GangStatus{Launch: reserved.Launch, Node: node, Phase: phase, Serial: serial[node]}); err != nil {
						t.Errorf("%s says %s: %v", node, phase, err)
					}
				}
			})
		}
		for node := range serial {
			todo <- node
		}
		close(todo)
		wg.Wait()
	}
	say(wire.GangReady)
	s.await(j.ID, "GO", inState(jobRunning))
	say(wire.GangRunning)
	say(wire.GangExited)
	if done := s.await(j.ID, "its end", inState("COMPLETED")); done.Launches != 1 {
		t.Errorf("%d launches", done.Launches)
	}
	t.Logf("over after %s", time.Since(began).Round(time.Millisecond))
}
