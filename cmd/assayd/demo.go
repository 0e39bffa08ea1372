package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/assay-gpu/assay/cmd/internal/lab"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// demoPolicy lets the guard take half of eight nodes, where the default would take one an hour.
const demoPolicy = `# The demo's own policy. The default guard takes 2 % of a fleet an hour: of eight nodes, one.
mode: act
guard:
  fleet_hour_share: 0.5
  fleet_day_share: 0.5
  reason_hour_share: 0.5
  leaf_hour_share: 0.5
agent:
  interval: 2s
  heartbeat: 1s
lifecycle:
  hard_case_level: standard
dcgm: {health: standalone, every: 1s}
`

// demoLimit bounds the whole demo.
const demoLimit = 3 * time.Minute

func demoCommand() *cobra.Command {
	var bin, dir string
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a control plane and eight simulated nodes, break four, and tell what happens",
		Long: `demo starts assayd with an embedded etcd and eight agents on simulated hardware, all of them the real programs, in a
directory of its own. It enrols the nodes as an administrator would, breaks two of them, and narrates until one is back in
service and the other waits for a person. A third has faults that no log tells of, a fourth computes wrong numbers while every
sensor is green, and is found by the prolog of the next job. At the end a gang runs around them. It leaves nothing behind, unless --keep is given: then it runs on until
Ctrl-C.`,
		Example: "  make demo\n  assayd demo --keep",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if bin == "" {
				self, err := os.Executable()
				if err != nil {
					return err
				}
				bin = filepath.Dir(self)
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), demoLimit, errors.New("the demo took longer than "+demoLimit.String()))
			defer cancel()
			return demo(ctx, cmd.Context(), bin, dir, keep)
		},
	}
	cmd.Flags().StringVar(&bin, "bin", "", "directory of the programs (default: this program's)")
	cmd.Flags().StringVar(&dir, "dir", "", "directory for the site (default: a temporary one)")
	cmd.Flags().BoolVar(&keep, "keep", os.Getenv("KEEP") == "1", "leave the site running until Ctrl-C, and say how to talk to it")
	return cmd
}

func demo(ctx, forever context.Context, bin, dir string, keep bool) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "assay-demo"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	n := &narrator{start: time.Now(), colour: term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == ""}
	var names []string
	for i := 1; i <= 8; i++ {
		names = append(names, fmt.Sprintf("gpu%03d", i))
	}
	l, err := lab.New(lab.Options{Bin: bin, Dir: dir, Nodes: names, Policy: demoPolicy, Scenario: lab.DefaultScenario(names) + "dcgm: up\n" + smallNodes, Control: []string{"--workload-manager", "none", "--fleet", "demo"}})
	if err != nil {
		return err
	}
	defer l.Close()
	defer func() {
		if err != nil {
			l.Copy(os.Stderr)
		}
	}()
	d := &demonstration{narrator: n, lab: l, names: names}
	for _, step := range []func(context.Context) error{d.bringUp, d.breakTwo, d.follow, d.quiet, d.wrong, d.conclude, d.gang} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if keep {
		n.say("The site runs on. Talk to it with")
		n.show("  export PATH=%s:$PATH\n  assay --socket %s fleet\n  assay --socket %s node explain gpu006\n  assay-agent sim xid --dir %s --gpu 2 95\n",
			bin, l.Socket("assayd"), l.Socket("assayd"), l.Hardware("gpu002"))
		n.say("Ctrl-C ends it.")
		<-forever.Done()
		return nil
	}
	n.say("Done in %.0f s. Every process is stopped and the site's directory removed.", time.Since(n.start).Seconds())
	return nil
}

// A demonstration is the demo's story.
type demonstration struct {
	*narrator
	lab   *lab.Lab
	names []string
	boot  string // of lostNode before it breaks
}

const lostNode, remapNode = "gpu003", "gpu006"

func (d *demonstration) bringUp(ctx context.Context) error {
	d.say("Control plane: assayd with an embedded etcd. It makes its own certificate authority at first start.")
	if err := d.lab.StartControl(ctx, "assayd", nil, nil); err != nil {
		return err
	}
	d.say("Policy of this demo: guard share 50 %% (default 2 %%), so that four of eight nodes may be out at once.")
	d.say("Eight nodes of eight simulated H100 each, two of them of two: one-time tokens, then the real agents with mutual TLS.")
	d.command("assay node enroll gpu[001-008]")
	if err := d.lab.Enrol(ctx, false, d.names...); err != nil {
		return err
	}
	for _, name := range d.names {
		if err := d.lab.StartAgent(name); err != nil {
			return err
		}
	}
	err := d.lab.Await(ctx, "eight certificates", func(nodes map[string]wire.Node) bool {
		certified := 0
		for _, n := range nodes {
			if n.Certificate != nil {
				certified++
			}
		}
		return certified == len(d.names)
	})
	if err != nil {
		return err
	}
	d.say("All eight passed their intake screen and hold a certificate.")
	return d.cli(ctx, "fleet")
}

func (d *demonstration) breakTwo(ctx context.Context) error {
	nodes, err := d.lab.Nodes(ctx)
	if err != nil {
		return err
	}
	d.boot = nodes[lostNode].BootID
	d.say("%s: GPU 3 falls off the bus (XID 79).", lostNode)
	if err := d.sim(ctx, "fall-off-bus", lostNode, "--gpu", "3"); err != nil {
		return err
	}
	d.say("%s: GPU 5's row remapper runs out of spare rows (XID 64).", remapNode)
	return errors.Join(
		d.sim(ctx, "set", remapNode, "--gpu", "5", "remap_failed=true", "remap_uncorrectable=512"),
		d.sim(ctx, "xid", remapNode, "--gpu", "5", "64"),
	)
}

// follow tells each transition as it happens, until one node is back and the other waits for a person.
func (d *demonstration) follow(ctx context.Context) error {
	told := map[string]int{}
	tell := func() error {
		for _, name := range []string{lostNode, remapNode} {
			h, err := d.history(ctx, name)
			if err != nil {
				return err
			}
			for _, e := range h[min(told[name], len(h)):] {
				if told[name]++; e.From != e.To && e.From != "" && e.From != "enrolled" && e.From != "screening" || e.To == "certified" && e.Case != "" {
					d.transition(e)
				}
			}
		}
		return nil
	}
	return d.lab.Await(ctx, "one node resumed and one waiting for a person", func(nodes map[string]wire.Node) bool {
		if err := tell(); err != nil {
			return false
		}
		back, out := nodes[lostNode], nodes[remapNode]
		resumed := back.State == string(lifecycle.Certified) && back.Case == "" && len(back.Effects) == 0 && back.BootID != d.boot
		waiting := out.State == string(lifecycle.Quarantined) && out.Owner != "assay" && len(out.Effects) == 0
		return resumed && waiting
	})
}

func (d *demonstration) conclude(ctx context.Context) error {
	d.say("%s was rebooted, screened, and is back with a new certificate. %s needs a new board: it waits for a person.", lostNode, remapNode)
	if err := d.cli(ctx, "fleet"); err != nil {
		return err
	}
	if err := d.cli(ctx, "node", "explain", remapNode); err != nil {
		return err
	}
	return d.cli(ctx, "guard", "show")
}

// cli shows a command and what it prints.
func (d *demonstration) cli(ctx context.Context, args ...string) error {
	d.command("assay " + strings.Join(args, " "))
	out, err := d.lab.CLI(ctx, args...)
	d.show("%s\n", out)
	return err
}
