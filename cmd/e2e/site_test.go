// Package e2e tells stories of a whole site on one host: a real Slurm, a real etcd, and every program of assay as it is
// shipped. Only the hardware is simulated.
package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/agent/sim/nvmllib"
	"github.com/assay-gpu/assay/cmd/internal/lab"
	"github.com/assay-gpu/assay/coordinator/slurm/slurmtest"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// root is the module's directory.
const root = "../.."

// built is the directory of the programs once a story has needed them.
var built string

// programs builds what the stories run, once: assayd with its kill points, and the simulated NVML.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "assay-bin")
	if err != nil {
		return "", err
	}
	built = dir
	for _, b := range []struct {
		name, cgo string
		args      []string
	}{
		{"assay", "0", nil}, {"assayd", "0", []string{"-tags", "killpoint"}}, {"assay-agent", "1", nil},
	} {
		if err := build(filepath.Join(dir, b.name), "./cmd/"+b.name, b.cgo, b.args...); err != nil {
			return "", err
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sim"), 0o755); err != nil {
		return "", err
	}
	return dir, nvmllib.Build(filepath.Join(dir, "sim", "libnvidia-ml.so.1"))
})

func build(out, pkg, cgo string, args ...string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", out}, args...), pkg)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, b)
	}
	return nil
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// policyOf is a policy for tests: quick intervals, and a guard wide enough for the story unless it says otherwise.
type policyOf struct {
	mode  string // default act
	guard string // lines of the guard section; default: all the room there is
	more  string // further sections
	whole string // all of it, instead of the above
}

func (p policyOf) String() string {
	if p.whole != "" {
		return p.whole
	}
	if p.mode == "" {
		p.mode = "act"
	}
	if p.guard == "" {
		p.guard = "  fleet_hour_share: 1\n  fleet_day_share: 1\n  reason_hour_share: 1\n  leaf_hour_share: 1\n"
	}
	return "mode: " + p.mode + "\nguard:\n" + p.guard +
		"agent:\n  interval: 1s\n  heartbeat: 1s\nlifecycle:\n  slurm_interval: 500ms\n  heartbeat_timeout: 10s\n" + p.more
}

// options say what a story starts with.
type options struct {
	policy  policyOf
	cluster slurmtest.Options
	control []string // more flags of assayd
	env     []string // more environment of assayd
	agent   []string // more flags of the agents
	noAgent bool
}

// A site is a running Slurm of eight nodes with assay on it.
type site struct {
	*lab.Lab
	t       testing.TB
	cluster *slurmtest.Cluster
	dir     string
	etc     string // the hooks' ETC_DIR
}

// limit bounds every wait of a story.
const limit = 90 * time.Second

// start brings up Slurm, the control plane, and one agent a node. Nothing is enrolled yet.
func start(t testing.TB, o options) *site {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a whole site")
	}
	slurmtest.Require(t)
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t: t, dir: dir, etc: filepath.Join(dir, "etc")}
	if err := os.Mkdir(s.etc, 0o755); err != nil {
		t.Fatal(err)
	}
	hook := filepath.Join(dir, "libexec", "assay-hook")
	if err := build(hook, "./cmd/assay-hook", "0", "-ldflags", "-X main.runDir="+filepath.Join(dir, "run")+" -X main.etcDir="+s.etc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"prolog", "epilog", "healthcheck"} {
		if err := os.Symlink("assay-hook", filepath.Join(dir, "libexec", name)); err != nil {
			t.Fatal(err)
		}
	}
	o.cluster.Prefix = "gpu00" // gpu001 … gpu008
	o.cluster.Prolog, o.cluster.Epilog, o.cluster.HealthCheckProgram = s.hook("prolog"), s.hook("epilog"), s.hook("healthcheck")
	o.cluster.OnReboot = func(node string) {
		if err := sim.Reboot(s.Hardware(node)); err != nil {
			t.Errorf("reboot of %s: %v", node, err)
		}
	}
	s.cluster = slurmtest.Start(t, o.cluster)
	control := append([]string{"--workload-manager", "slurm", "--slurm-conf", s.cluster.Conf, "--slurm-deadline", "3s"}, o.control...)
	s.Lab, err = lab.New(lab.Options{Bin: bin, Dir: dir, Nodes: s.cluster.Nodes, Policy: o.policy.String(), Control: control, Env: o.env, Agent: o.agent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.Copy(os.Stderr)
			fmt.Fprintln(os.Stderr, s.cluster.SlurmctldLog())
		}
		s.Close()
	})
	ctx := s.ctx()
	if err := s.StartControl(ctx, "assayd", nil, nil); err != nil {
		t.Fatal(err)
	}
	if !o.noAgent {
		for _, n := range s.cluster.Nodes {
			if err := s.StartAgent(n); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.AwaitAgents(ctx, s.cluster.Nodes...); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// hook is the path of one of the hooks.
func (s *site) hook(name string) string { return filepath.Join(s.dir, "libexec", name) }

func (s *site) ctx() context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("not within %v", limit))
	s.t.Cleanup(cancel)
	return ctx
}

// adopt enrols all nodes as a live fleet and runs one job over them, whose prologs certify them.
func (s *site) adopt() {
	s.t.Helper()
	if err := s.Enrol(s.ctx(), true, s.cluster.Nodes...); err != nil {
		s.t.Fatal(err)
	}
	// The agents have their identity now; the control plane hears from each before the job starts.
	s.await("every node heard from", heardFrom(s.cluster.Nodes))
	s.run("true", "-N8", "--exclusive", "--gres=gpu:8")
	s.await("eight certificates", all(healthy))
}

// heardFrom waits for the first report of each node.
func heardFrom(nodes []string) func(map[string]wire.Node) bool {
	return func(ns map[string]wire.Node) bool {
		for _, n := range nodes {
			if ns[n].BootID == "" {
				return false
			}
		}
		return true
	}
}

func all(ok func(wire.Node) bool) func(map[string]wire.Node) bool {
	return func(ns map[string]wire.Node) bool {
		for _, n := range ns {
			if !ok(n) {
				return false
			}
		}
		return len(ns) > 0
	}
}

// set changes GPU gpu of a node's simulated hardware; -1 is the node as a whole.
func (s *site) set(node string, gpu int, changes map[string]string) {
	s.t.Helper()
	if err := sim.Set(s.Hardware(node), gpu, changes); err != nil {
		s.t.Fatal(err)
	}
}

// hookCount is how often a hook on the node has ended with the outcome, by the agent's own metrics.
func (s *site) hookCount(node, hook, outcome string) int {
	s.t.Helper()
	m, err := s.Metrics(s.ctx(), node)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(m) {
		if strings.HasPrefix(line, "assay_hook_total{") && strings.Contains(line, `hook="`+hook+`"`) && strings.Contains(line, `outcome="`+outcome+`"`) {
			n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return int(n)
		}
	}
	return 0
}

// text is what a person reads of a node's history.
func (s *site) text(node string) string {
	s.t.Helper()
	out, err := s.CLI(s.ctx(), "node", "history", node)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// run submits a one-line batch job and waits until it has completed.
func (s *site) run(line string, args ...string) string {
	s.t.Helper()
	id := s.submit(line, args...)
	s.cluster.WaitJob(id, "COMPLETED", limit)
	return id
}

func (s *site) submit(line string, args ...string) string {
	s.t.Helper()
	return s.cluster.Submit("#!/bin/sh\n"+line+"\n", args...)
}

func (s *site) await(what string, ok func(map[string]wire.Node) bool) {
	s.t.Helper()
	if err := s.Await(s.ctx(), what, ok); err != nil {
		s.t.Fatal(err)
	}
}

// awaitNode waits until one node is as ok says.
func (s *site) awaitNode(name, what string, ok func(wire.Node) bool) wire.Node {
	s.t.Helper()
	var last wire.Node
	s.await(name+" "+what, func(ns map[string]wire.Node) bool {
		last = ns[name]
		return ok(last)
	})
	return last
}

// healthy is certified, with a certificate in force, in service, and with nothing left to do.
func healthy(n wire.Node) bool {
	return n.State == "certified" && n.Certificate != nil && !n.Suspended && n.Case == "" && len(n.Effects) == 0 && !n.Lost
}

func state(want string) func(wire.Node) bool {
	return func(n wire.Node) bool { return n.State == want }
}

// hist is what the control plane keeps of a node.
func (s *site) hist(node string) []wire.HistoryEntry {
	s.t.Helper()
	out, err := s.CLI(s.ctx(), "node", "history", node, "-o", "json")
	if err != nil {
		s.t.Fatal(err)
	}
	var h []wire.HistoryEntry
	if err := json.Unmarshal([]byte(out), &h); err != nil {
		s.t.Fatal(err)
	}
	return h
}

// drains are the updates of a node that slurmctld logged, in order.
func (s *site) updates(node string) []string {
	var out []string
	for line := range strings.Lines(s.cluster.SlurmctldLog()) {
		if strings.Contains(line, "update_node: node "+node+" ") {
			out = append(out, strings.TrimSpace(line[strings.Index(line, "update_node"):]))
		}
	}
	return out
}

// caseOf reads a case.
func (s *site) caseOf(id string) wire.Case {
	s.t.Helper()
	out, err := s.CLI(s.ctx(), "case", "show", id, "-o", "json")
	if err != nil {
		s.t.Fatal(err)
	}
	var c wire.Case
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		s.t.Fatal(err)
	}
	return c
}
