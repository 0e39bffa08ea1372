package nvml

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/agent/sim/nvmllib"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
)

// library is the simulated libnvidia-ml.so.1, built once.
var library string

// TestMain is the probe child too: the supervisor under test starts this binary again.
func TestMain(m *testing.M) {
	if os.Getenv("ASSAY_TEST_NVML_AGENT") != "" {
		agentMain()
		os.Exit(0)
	}
	if lib := os.Getenv("ASSAY_TEST_NVML_CHILD"); lib != "" {
		if err := Child(context.Background(), os.Stdin, os.Stdout, lib); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "assay-nvml-test-")
	if err != nil {
		panic(err)
	}
	library = filepath.Join(dir, "libnvidia-ml.so.1")
	if err := nvmllib.Build(library); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// A node is simulated hardware with a supervisor over it.
type node struct {
	t   *testing.T
	dir string
	run string
	*Supervisor
}

// Deadlines short enough for tests. A healthy call takes microseconds and a child starts in tens of milliseconds; a
// loaded machine gets ten times that.
func testPolicy() policy.Agent {
	return policy.Agent{
		CallDeadline: policy.Duration(700 * time.Millisecond), InitDeadline: policy.Duration(3 * time.Second),
		HungChildren: 3, StuckChild: policy.Duration(200 * time.Millisecond),
	}
}

// newNode makes the node gpu001 of a scenario.
func newNode(t *testing.T, scenario string, change ...func(*Config)) *node {
	t.Helper()
	sc, err := sim.ParseScenario("scenario.yaml", []byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, dir: t.TempDir(), run: t.TempDir()}
	if err := sim.Init(n.dir, sc, "gpu001", library); err != nil {
		t.Fatal(err)
	}
	n.Supervisor = n.supervisor(change...)
	return n
}

// supervisor makes another supervisor over the same node, as an agent that was restarted.
func (n *node) supervisor(change ...func(*Config)) *Supervisor {
	n.t.Helper()
	at := sim.In(n.dir)
	cfg := Config{
		Argv: []string{os.Args[0]}, Env: n.childEnv(),
		RunDir: n.run, BootID: at.BootID, Sysfs: at.Sysfs, Node: "gpu001", Policy: testPolicy(),
	}
	for _, f := range change {
		f(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { s.Close() })
	return s
}

// childEnv makes this binary the probe child of the node.
func (n *node) childEnv() []string {
	return []string{"ASSAY_TEST_NVML_CHILD=" + sim.In(n.dir).Library, sim.EnvDir + "=" + n.dir}
}

func (n *node) set(gpu int, key, value string) {
	n.t.Helper()
	if err := sim.Set(n.dir, gpu, map[string]string{key: value}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) snapshot(within time.Duration) catalog.Snapshot {
	n.t.Helper()
	return snapshot(n.t, n.Supervisor, within)
}

func snapshot(t *testing.T, s *Supervisor, within time.Duration) catalog.Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	start := time.Now()
	snap, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > within+500*time.Millisecond {
		t.Errorf("Snapshot took %v with a deadline of %v", d, within)
	}
	return snap
}

// state is the simulator's own account of the node.
func (n *node) state() sim.State {
	n.t.Helper()
	s, err := sim.Read(n.dir)
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}
