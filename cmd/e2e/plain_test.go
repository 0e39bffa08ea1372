package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/socket"
	"github.com/assay-gpu/assay/cmd/internal/lab"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// hardLimit is how long a hook may take at most, whatever hangs: slurmd's patience is counted on it.
const hardLimit = 20 * time.Second

// plain is a site without a workload manager: a control plane, one agent a node, every node certified. What a story says of
// agents alone needs no Slurm.
func plain(t *testing.T, o options, nodes ...string) *site {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a whole site")
	}
	s := unenrolled(t, o, nodes...)
	for _, n := range nodes {
		if err := s.StartAgent(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AwaitAgents(s.ctx(), nodes...); err != nil {
		t.Fatal(err)
	}
	s.certify(nodes...)
	return s
}

// unenrolled is a control plane and the hardware of the nodes, without agents.
func unenrolled(t *testing.T, o options, nodes ...string) *site {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t: t, dir: dir}
	control := append([]string{"--workload-manager", "none"}, o.control...)
	s.Lab, err = lab.New(lab.Options{Bin: bin, Dir: dir, Nodes: nodes, Policy: o.policy.String(), Control: control, Env: o.env, Agent: o.agent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.Copy(os.Stderr)
		}
		s.Close()
	})
	if err := s.StartControl(s.ctx(), "assayd", nil, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// certify enrols nodes whose agents run as a live fleet and has a prolog on each, which certifies it.
func (s *site) certify(nodes ...string) {
	s.t.Helper()
	if err := s.Enrol(s.ctx(), true, nodes...); err != nil {
		s.t.Fatal(err)
	}
	s.await("every node heard from", heardFrom(nodes))
	for _, n := range nodes {
		if a := s.ask(n, "prolog"); a.exit != 0 {
			s.t.Fatalf("%s refuses a job on sound hardware: %+v", n, a)
		}
		s.ask(n, "epilog")
		s.awaitNode(n, "healthy", healthy)
	}
}

// An answer is what a hook got from a node's agent.
type answer struct {
	exit int
	said string
	took time.Duration
}

// ask asks a node's agent as the hooks do, for a job on all GPUs. An answer past the hard limit fails the story.
func (s *site) ask(node, hook string) answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), hardLimit, fmt.Errorf("no answer within %v", hardLimit))
	defer cancel()
	begun := time.Now()
	exit, said, err := socket.Ask(ctx, filepath.Join(s.Sockets, node+".sock"), hook, map[string]string{
		"SLURMD_NODENAME": node, "SLURM_JOB_ID": "4711", "SLURM_JOB_USER": "ann", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_GPUS": "0-7",
	})
	if err != nil {
		s.t.Fatalf("%s of %s after %v: %v", hook, node, time.Since(begun), err)
	}
	return answer{exit, said, time.Since(begun)}
}

// restart kills a node's agent with -9 and starts it again.
func (s *site) restart(node string) {
	s.t.Helper()
	s.Agent(node).Kill(9)
	s.startAgent(node)
}

// startAgent starts a node's agent and waits until hooks can ask it.
func (s *site) startAgent(node string) {
	s.t.Helper()
	if err := s.StartAgent(node); err != nil {
		s.t.Fatal(err)
	}
	if err := s.AwaitAgents(s.ctx(), node); err != nil {
		s.t.Fatal(err)
	}
}

// blockedFile is what a node's agent keeps of the GPUs it asks no more; empty when it keeps nothing.
func (s *site) blockedFile(node string) string {
	b, err := os.ReadFile(filepath.Join(s.RunDir(node), node, "blocked"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(bytes.TrimSpace(b))
}

// until polls until ok.
func (s *site) until(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// fast is a policy with quick intervals, lines added to its agent section, and further sections.
func fast(agent, more string) policyOf {
	return policyOf{whole: "mode: act\nguard:\n  fleet_hour_share: 1\n  fleet_day_share: 1\n  reason_hour_share: 1\n  leaf_hour_share: 1\n" +
		"agent:\n  interval: 1s\n  heartbeat: 1s\n" + agent + "lifecycle:\n  slurm_interval: 500ms\n  heartbeat_timeout: 10s\n" + more}
}

// cased reports whether a node is out of service with a case.
func cased(n wire.Node) bool { return n.Case != "" && n.Certificate == nil }
