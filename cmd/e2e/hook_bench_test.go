package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/cmd/internal/lab"
)

// BenchmarkHook is packaging/bench/hook.sh against a real agent on a certified node of eight simulated GPUs, so with the
// agent's own part of the certificate fast path. The script's table and verdict are the benchmark's output.
func BenchmarkHook(b *testing.B) {
	for b.Loop() {
		benchmarkHook(b)
	}
}

func benchmarkHook(b *testing.B) {
	machine(b)
	bin, err := programs()
	if err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "hook")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	const node = "gpu001"
	l, err := lab.New(lab.Options{Bin: bin, Dir: dir, Nodes: []string{node}, Policy: "mode: act\n", Control: []string{"--workload-manager", "none"}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if err := l.StartControl(ctx, "assayd", nil, nil); err != nil {
		b.Fatal(err)
	}
	if err := l.Enrol(ctx, true, node); err != nil {
		b.Fatal(err)
	}
	if err := l.StartAgent(node); err != nil {
		b.Fatal(err)
	}
	if err := l.AwaitAgents(ctx, node); err != nil {
		b.Fatal(err)
	}
	if err := l.Await(ctx, "the node to be heard from", heardFrom([]string{node})); err != nil {
		b.Fatal(err)
	}
	// The script runs one hook before it measures; the node's first one takes the quick suite and certifies it.
	first := filepath.Join(dir, "prolog")
	if err := build(first, "./cmd/assay-hook", "0", "-ldflags", "-X main.runDir="+l.Sockets+" -X main.etcDir="+dir); err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, first)
	cmd.Env = append(os.Environ(), "SLURMD_NODENAME="+node, "SLURM_JOB_ID=1", "SLURM_JOB_GPUS=0,1,2,3,4,5,6,7")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("the first prolog: %v: %s", err, out)
	}
	if err := l.Await(ctx, "the node to be certified", all(healthy)); err != nil {
		b.Fatal(err)
	}
	if err := os.Symlink(node+".sock", filepath.Join(l.Sockets, "agent.sock")); err != nil {
		b.Fatal(err)
	}

	s := &site{Lab: l, t: b, dir: dir}
	before := s.hookCount(node, "prolog", "fast_pass")
	script := exec.CommandContext(ctx, filepath.Join(root, "packaging", "bench", "hook.sh"), l.Sockets)
	out, err := script.CombinedOutput()
	b.Logf("%s", out)
	if err != nil && !strings.Contains(string(out), "times /bin/true") {
		b.Fatal(err) // it could not measure; a limit that does not hold is in what it printed
	}
	b.Logf("prologs that the agent passed on the certificate alone: %d", s.hookCount(node, "prolog", "fast_pass")-before)
}
