package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/topo"
)

func (a *app) topoCmd() *cobra.Command {
	return a.groupCmd("topo", "Show the switch tree, and check a topology.conf", "  assay topo show\n  assay topo check /etc/slurm/topology.conf", a.topoShowCmd(), a.topoCheckCmd(), a.topoGPUsCmd())
}

// maxTopology bounds a topology.conf: 40 times that of 100,000 nodes.
const maxTopology = 32 << 20

func readTopology(name string, in io.Reader) (string, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", &usageError{err.Error(), "name a topology.conf, or - for standard input"}
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxTopology+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxTopology {
		return "", &usageError{fmt.Sprintf("%s is larger than %d MiB", name, maxTopology>>20), "that is no topology.conf"}
	}
	return string(text), nil
}

func (a *app) topoShowCmd() *cobra.Command {
	depth, health := 0, false
	return a.command(spec{
		use: "show [FILE]", short: "Draw the switch tree, with the health of its nodes", args: cobra.MaximumNArgs(1), local: true,
		long: `Without FILE the leaves are those that the control plane knows, with the health of each. With FILE, a topology.conf
in tree or block form, the tree is drawn from it alone; --health asks the control plane for the nodes' health.

Exits 1 when a node shown is out of service.`,
		example: `  assay topo show
  assay topo show /etc/slurm/topology.conf --health
  assay topo show topology.conf --depth 2`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().IntVar(&depth, "depth", 0, "levels to draw from the top; 0: all")
			cmd.Flags().BoolVar(&health, "health", false, "with FILE: ask the control plane how its nodes are")
		},
		run: func(ctx context.Context, _ *client.Client, args []string) error {
			if depth < 0 {
				return &usageError{fmt.Sprintf("--depth %d: want 0 or more", depth), ""}
			}
			var nodes []wire.Node
			if len(args) == 0 || health {
				c, err := a.connect()
				if err != nil {
					return err
				}
				defer c.Close()
				if nodes, err = c.Nodes(ctx, ""); err != nil {
					return err
				}
			}
			var tree *topo.Tree
			if len(args) == 0 {
				tree = leavesOf(nodes)
			} else {
				text, err := readTopology(args[0], a.in)
				if err != nil {
					return err
				}
				var known []string
				for _, n := range nodes {
					known = append(known, n.Name)
				}
				var faults []topo.Fault
				tree, faults = topo.Parse(text, known)
				for _, f := range faults {
					fmt.Fprintf(a.err, "assay: %s: %s\n", args[0], clean(f.String()))
				}
			}
			return a.showTree(tree, nodes, depth)
		},
	})
}

// leavesOf is the tree that the control plane knows: leaves with their nodes, and nodes on none.
func leavesOf(nodes []wire.Node) *topo.Tree {
	by := map[string][]string{}
	var known []string
	for _, n := range nodes {
		known = append(known, n.Name)
		if n.Leaf != "" {
			by[n.Leaf] = append(by[n.Leaf], n.Name)
		}
	}
	var b strings.Builder
	leaves := slices.Collect(maps.Keys(by))
	hostlist.Sort(leaves)
	for _, leaf := range leaves {
		fmt.Fprintf(&b, "SwitchName=%s Nodes=%s\n", leaf, hostlist.Compress(by[leaf]))
	}
	tree, _ := topo.Parse(b.String(), known) // that its leaves have no common parent is known, and no fault
	return tree
}

// A topoSwitch is one line of the picture, for machines.
type topoSwitch struct {
	Name   string         `json:"name"`
	Height int            `json:"height"`
	Parent string         `json:"parent,omitempty"`
	Nodes  string         `json:"nodes"`
	Count  int            `json:"count"`
	Health map[string]int `json:"health,omitempty"` // nodes by state; lost beside it
}

func (a *app) showTree(tree *topo.Tree, nodes []wire.Node, depth int) error {
	if tree == nil {
		fmt.Fprintln(a.err, "no node")
		return nil
	}
	by := make(map[string]wire.Node, len(nodes))
	for _, n := range nodes {
		by[n.Name] = n
	}
	bad := false
	health := func(lo, hi int32) map[string]int {
		if len(nodes) == 0 {
			return nil
		}
		m := map[string]int{}
		for _, name := range tree.Nodes[lo:hi] {
			n, ok := by[name]
			switch {
			case !ok:
				m["unknown"]++
			case n.Lost:
				m["lost"]++
			default:
				m[n.State]++
			}
			bad = bad || ok && outOfService(n)
		}
		return m
	}
	note := func(lo, hi int32) string {
		m := health(lo, hi)
		var parts []string
		for _, s := range append(stateNames(), "lost", "unknown") {
			if m[s] > 0 && (s != string(lifecycle.Certified) || len(m) > 1) {
				parts = append(parts, fmt.Sprintf("%d %s", m[s], a.state(s, false)))
			}
		}
		if len(parts) == 0 && m[string(lifecycle.Certified)] > 0 {
			return "all certified"
		}
		return strings.Join(parts, ", ")
	}
	var out []topoSwitch
	for _, s := range tree.Switches {
		x := topoSwitch{Name: s.Name, Height: s.Height, Nodes: hostlist.Compress(tree.Nodes[s.Lo:s.Hi]), Count: int(s.Hi - s.Lo), Health: health(s.Lo, s.Hi)}
		if s.Parent != topo.None {
			x.Parent = tree.Switches[s.Parent].Name
		}
		out = append(out, x)
	}
	err := a.emit(out, func() error {
		_, err := io.WriteString(a.out, tree.Draw(depth, note))
		return err
	})
	if err == nil && bad {
		return errFault
	}
	return err
}

// A topoReport is what check finds, for machines.
type topoReport struct {
	File     string       `json:"file"`
	Nodes    int          `json:"nodes"`
	Leaves   int          `json:"leaves"`
	Heights  int          `json:"heights"`
	Domains  int          `json:"nvlink_domains,omitempty"`
	Faults   []topo.Fault `json:"faults"`
	Smallest int          `json:"smallest_leaf"`
	Largest  int          `json:"largest_leaf"`
}

func (a *app) topoCheckCmd() *cobra.Command {
	nodes := ""
	return a.command(spec{
		use: "check FILE", short: "Check a topology.conf and name every fault", args: cobra.ExactArgs(1), local: true,
		long: `FILE is a topology.conf in tree or block form, or - for standard input. --nodes says which nodes there are; without
it the file alone says, and what looks like a slip of the hand is told as such. A warning is something that Slurm would
take, an error a line of which something was left out.

Exits 1 when there is anything to tell.`,
		example: `  assay topo check /etc/slurm/topology.conf --nodes 'gpu[001-080]'
  assay topo check topology.conf -o json`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&nodes, "nodes", "", "the nodes that exist, a hostlist")
			a.completeFlag(cmd, "nodes", offerNodes)
		},
		run: func(_ context.Context, _ *client.Client, args []string) error {
			text, err := readTopology(args[0], a.in)
			if err != nil {
				return err
			}
			known, err := hostlist.Expand(nodes)
			if err != nil {
				return &usageError{"--nodes: " + err.Error(), "write nodes as gpu[001-016,020]"}
			}
			tree, faults := topo.Parse(text, known)
			r := topoReport{File: args[0], Faults: faults}
			if r.Faults == nil {
				r.Faults = []topo.Fault{}
			}
			if tree != nil {
				r.Nodes, r.Heights, r.Domains = len(tree.Nodes), tree.Heights(), len(tree.Domains)
				for l := range tree.Leaves() {
					s := &tree.Switches[l]
					if s.Outside {
						continue
					}
					n := int(s.Hi - s.Lo)
					if r.Leaves == 0 || n < r.Smallest {
						r.Smallest = n
					}
					r.Leaves, r.Largest = r.Leaves+1, max(r.Largest, n)
				}
			}
			err = a.emit(r, func() error {
				var b strings.Builder
				for _, f := range faults {
					fmt.Fprintf(&b, "%s: %s\n", clean(args[0]), clean(f.String()))
				}
				fmt.Fprintf(&b, "%s; leaf switches: %d, with %d to %d nodes; %s\n", count(r.Nodes, "node"), r.Leaves, r.Smallest, r.Largest, count(r.Heights, "level"))
				_, err := io.WriteString(a.out, b.String())
				return err
			})
			if err == nil && len(faults) > 0 {
				return errFault
			}
			return err
		},
	})
}
