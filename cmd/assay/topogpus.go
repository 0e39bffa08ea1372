package main

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// A gpuReport is how the GPUs of a node hang together, for machines.
type gpuReport struct {
	GPUs   int        `json:"gpus"`
	NVLink [][]int    `json:"nvlink"` // sets that NVLink joins, of two and more
	Near   [][]int    `json:"near"`   // sets under one PCIe root or in one NUMA node
	Picks  []gpusPick `json:"picks"`
}

// A gpusPick is which GPUs a job of so many would get.
type gpusPick struct {
	GPUs int   `json:"gpus"`
	Gets []int `json:"gets"`
}

func (a *app) topoGPUsCmd() *cobra.Command {
	busy := ""
	return a.command(spec{
		use: "gpus FILE", short: "Show how the GPUs of a node hang together, and which a job would get", args: cobra.ExactArgs(1), local: true,
		long: `FILE is what nvidia-smi topo -m prints, or - for standard input. Sets joined by NVLink, and sets under one PCIe root or in one
NUMA node, are told; then, for each number of GPUs that a job may ask, those that placement would take on this node: joined by
NVLink where it can be, leftovers before what is whole.`,
		example: "  nvidia-smi topo -m | assay topo gpus -\n  assay topo gpus topo-m.txt --busy 0,3",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&busy, "busy", "", "GPUs that others have, as 0,3")
		},
		run: func(_ context.Context, _ *client.Client, args []string) error {
			text, err := readTopology(args[0], a.in)
			if err != nil {
				return err
			}
			s, err := topo.ParseMatrix("node", text)
			if err != nil {
				return &usageError{fmt.Sprintf("%s: %v", args[0], err), "give it what nvidia-smi topo -m prints"}
			}
			free := s.All()
			if busy != "" {
				for part := range strings.SplitSeq(busy, ",") {
					n, err := strconv.Atoi(part)
					if err != nil || n < 0 || n >= s.GPUs {
						return &usageError{fmt.Sprintf("--busy %q: the node has GPUs 0 to %d", part, s.GPUs-1), "write it as 0,3"}
					}
					free &^= 1 << n
				}
			}
			r := gpuReport{GPUs: s.GPUs, NVLink: gpuSets(s.NVLink), Near: gpuSets(s.Near)}
			for k := 1; k <= bits.OnesCount32(free); k++ {
				r.Picks = append(r.Picks, gpusPick{k, gpuList(s.Pick(free, k))})
			}
			return a.emit(r, func() error {
				fmt.Fprintf(a.out, "%s; joined by NVLink: %s; near each other: %s\n", count(r.GPUs, "GPU"), setsText(r.NVLink), setsText(r.Near))
				for _, p := range r.Picks {
					fmt.Fprintf(a.out, "  a job of %d gets %s\n", p.GPUs, spans(p.Gets))
				}
				return nil
			})
		},
	})
}

// gpuSets are the sets of two and more that reach each other, each once.
func gpuSets(reach []uint32) [][]int {
	sets := [][]int{}
	seen := uint32(0)
	for i, mask := range reach {
		set := mask | 1<<i
		if seen&(1<<i) == 0 && set != 1<<i {
			sets = append(sets, gpuList(set))
		}
		seen |= set
	}
	return sets
}

func gpuList(mask uint32) []int {
	out := []int{}
	for ; mask != 0; mask &= mask - 1 {
		out = append(out, bits.TrailingZeros32(mask))
	}
	return out
}

func setsText(sets [][]int) string {
	if len(sets) == 0 {
		return "none"
	}
	var parts []string
	for _, set := range sets {
		parts = append(parts, spans(set))
	}
	return strings.Join(parts, " and ")
}
