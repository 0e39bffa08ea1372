package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/assay-gpu/assay/agent"
	"github.com/assay-gpu/assay/agent/socket"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// wrongNode computes wrong numbers on one GPU; rightNode is its neighbour, and is asked the same.
const wrongNode, rightNode = "gpu007", "gpu005"

// smallNodes gives the two of them two GPUs each: the machine that simulates the kernels is slow.
const smallNodes = "overrides:\n  - {nodes: '" + wrongNode + "," + rightNode + "', count: 2}\n"

// stuckBit is a tensor core on one SM whose results have one bit stuck at 1, in the format of golden's fault files.
const stuckBit = `{"v":1,"id":"tensor","class":"stuck","where":{"sm":2,"part":1,"unit":"tensor16","lane":"all","net":null},"when":{"p":1},"do":{"or":"00000400"},"seed":1}`

// goldenPolicy has the prologs of two nodes run golden kernels, small enough for simulated GPUs, and trusts them there: on
// real ones a kernel must earn that.
const goldenPolicy = demoPolicy + `
overrides:
  - name: golden kernels in the prolog
    nodes: [` + wrongNode + `, ` + rightNode + `]
    set:
      golden: {prolog: true, size: reduced, trust_simulated: true}
`

// wrong makes a GPU compute wrong numbers, and shows that the next job's prolog finds it.
func (d *demonstration) wrong(ctx context.Context) error {
	d.say("%s: on GPU 1 one bit of a tensor core's results is stuck, on one SM. No log, no counter and no sensor tells of it.", wrongNode)
	if err := d.sim(ctx, "set", wrongNode, "--gpu", "1", "compute_faults="+stuckBit); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "assay-policy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "golden.yaml")
	if err := os.WriteFile(path, []byte(goldenPolicy), 0o644); err != nil {
		return err
	}
	d.say("Policy: from now on a job's prolog there runs golden kernels, known inputs with known outputs, every word compared. A certificate")
	d.say("of before proves nothing of them. (A kernel must earn trust on real GPUs before it may take a node out; this demo's policy")
	d.say("promotes them on the simulated ones, and only there.)")
	d.command("assay policy apply golden.yaml")
	if _, err := d.lab.CLI(ctx, "policy", "apply", path); err != nil {
		return err
	}
	for _, node := range []string{wrongNode, rightNode} {
		if err := d.heard(ctx, node); err != nil {
			return err
		}
	}
	d.say("A job comes to both nodes: slurmd would run this before it starts.")
	if exit, text, err := d.prolog(ctx, wrongNode, "0-1", "4711"); err != nil || exit != 1 {
		return fmt.Errorf("prolog on %s: exit %d: %s: %v", wrongNode, exit, text, err)
	}
	if exit, text, err := d.prolog(ctx, rightNode, "0-1", "4711"); err != nil || exit != 0 {
		return fmt.Errorf("prolog on %s: exit %d: %s: %v", rightNode, exit, text, err)
	}
	err = d.lab.Await(ctx, "the wrong numbers", func(nodes map[string]wire.Node) bool {
		n := nodes[wrongNode]
		return n.Case != "" && n.Certificate == nil
	})
	if err != nil {
		return err
	}
	return d.cli(ctx, "node", "explain", wrongNode)
}

// heard waits until the node's agent goes by a policy later than the first.
func (d *demonstration) heard(ctx context.Context, node string) error {
	return d.lab.Await(ctx, "the policy on "+node, func(map[string]wire.Node) bool {
		_, text, err := socket.Ask(ctx, filepath.Join(d.lab.Sockets, node+".sock"), "status", nil)
		var status agent.Status
		return err == nil && json.Unmarshal([]byte(text), &status) == nil && status.Policy > 1
	})
}

// prolog asks a node's agent what its prolog asks, and shows how that ends. The hook itself looks for the agent in /run/assay
// only, where this demo has none.
func (d *demonstration) prolog(ctx context.Context, node, gpus, job string) (exit int, text string, err error) {
	d.command(fmt.Sprintf("SLURMD_NODENAME=%s SLURM_JOB_ID=%s SLURM_JOB_GPUS=%s /usr/libexec/assay/prolog", node, job, gpus))
	began := time.Now()
	exit, text, err = socket.Ask(ctx, filepath.Join(d.lab.Sockets, node+".sock"), "prolog", map[string]string{
		"SLURMD_NODENAME": node, "SLURM_JOB_ID": job, "SLURM_JOB_GPUS": gpus, "SLURM_JOB_NUM_NODES": "2",
	})
	if err == nil {
		d.show("%s\n", strings.TrimSpace(fmt.Sprintf("%s\nexit status %d, after %.1f s", strings.TrimSpace(text), exit, time.Since(began).Seconds())))
	}
	return exit, text, err
}
