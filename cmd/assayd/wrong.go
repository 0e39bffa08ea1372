package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/assay-gpu/assay/coordinator/wire"
)

const wrongNode = "gpu007"

// stuckBit is a tensor core on one SM whose results have one bit stuck at 1, in the format of golden's fault files.
const stuckBit = `{"v":1,"id":"tensor","class":"stuck","where":{"sm":2,"part":1,"unit":"tensor16","lane":"all","net":null},"when":{"p":1},"do":{"or":"00000400"},"seed":1}`

// goldenPolicy has the screens of wrongNode run golden kernels, small enough for simulated GPUs, and trusts them there: on
// real ones a kernel must earn that.
const goldenPolicy = demoPolicy + `
overrides:
  - name: golden kernels at screens
    nodes: [` + wrongNode + `]
    set:
      golden: {screen: true, size: reduced, within: 2m, trust_simulated: true}
`

// wrong makes a GPU compute wrong numbers, and shows that known inputs with known outputs find it.
func (d *demonstration) wrong(ctx context.Context) error {
	d.say("%s: on GPU 2 one bit of a tensor core's results is stuck, on one SM. No log, no counter and no sensor tells of it.", wrongNode)
	dir, err := os.MkdirTemp("", "assay-policy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "golden.yaml")
	if err := os.WriteFile(path, []byte(goldenPolicy), 0o644); err != nil {
		return err
	}
	d.say("Policy: from now on its screens run golden kernels, known inputs with known outputs, every word compared. (A kernel must")
	d.say("earn trust on real GPUs before it may take a node out; this demo's policy trusts it on simulated ones.)")
	d.command("assay policy apply golden.yaml")
	if _, err := d.lab.CLI(ctx, "policy", "apply", path); err != nil {
		return err
	}
	if err := d.sim(ctx, "set", wrongNode, "--gpu", "2", "compute_faults="+stuckBit); err != nil {
		return err
	}
	d.say("The node is rebooted, and screened before it takes work again.")
	if err := d.sim(ctx, "reboot", wrongNode); err != nil {
		return err
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
