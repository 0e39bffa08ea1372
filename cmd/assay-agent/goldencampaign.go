package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/campaign"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

func newGoldenCampaign() *cobra.Command {
	var file string
	var draw uint64
	var n, capability int
	var without []string
	var asJSON bool
	var class, out string
	var each, others bool
	var clean int
	var gate gateFlags
	c := &cobra.Command{
		Use: "campaign", Short: "What does the suite find of faults in the simulated GPU?", Args: usageArgs(cobra.NoArgs),
		Long: "Campaign puts one fault after the other into the PTX machine and runs every golden kernel at reduced size on it, then ten workloads\n" +
			"on random data: a fault that corrupts none of them does not count. Faults come from a file of JSON lines, or are drawn from a\n" +
			"seed, in equal numbers of each kind. It prints one line a fault with --json, and the share found of each kind with its 95 %\n" +
			"bounds. The figures are of these faults and of the machine, not of silicon. golden-campaign.md says what each class is.",
		Example: "  assay-agent golden campaign --faults held-out.jsonl --json\n  assay-agent golden campaign --draw 7 -n 300\n  assay-agent golden campaign --draw 7 --leave-one-out --out raw.jsonl\n  assay-agent golden campaign --class gate --lane 0,77\n  assay-agent golden campaign --class trigger\n  assay-agent golden campaign --clean 1000",
		RunE: func(c *cobra.Command, _ []string) error {
			if clean < 0 || clean > 0 && (file != "" || class != "machine") {
				return usage(errors.New("--clean takes a number of runs, and no faults"))
			}
			switch class {
			case "machine":
			case "gate", "trigger":
				o, err := campaignSuite(capability, without)
				if err != nil {
					return usage(err)
				}
				o.Size = campaign.GateSize
				if class == "trigger" {
					return runTriggers(c, gate, o, draw, asJSON)
				}
				return runGate(c, gate, o, asJSON)
			default:
				return usage(fmt.Errorf("--class %q: want machine, gate or trigger", class))
			}
			if clean > 0 {
				o, err := campaignSuite(capability, without)
				if err != nil {
					return usage(err)
				}
				return runClean(c, o, clean, draw, asJSON)
			}
			faults, o, err := campaignInput(file, c.Flags().Changed("draw"), draw, n, capability, without)
			if err != nil {
				return usage(err)
			}
			o.Each, o.Others = each, others
			lines, err := runCampaign(c, faults, o, out)
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(c.OutOrStdout())
				for _, l := range lines {
					if err := enc.Encode(l); err != nil {
						return err
					}
				}
				return nil
			}
			return printCampaign(c.OutOrStdout(), lines, each, others)
		},
	}
	c.Flags().StringVar(&class, "class", "machine", "`CLASS` of faults: machine, from --faults or --draw; gate, those of committed netlists; or trigger, by operand bits")
	c.Flags().BoolVar(&each, "leave-one-out", false, "run every kernel on every fault, and say what is lost without each")
	c.Flags().BoolVar(&others, "others", false, "run stand-ins for gpu-burn, DCGM's diagnostic and memory tests and a NaN scan on the same faults")
	c.Flags().IntVar(&clean, "clean", 0, "run the suite so `MANY` times without a fault, under hostile scheduling, and count false positives")
	c.Flags().StringVar(&out, "out", "", "keep the lines in `FILE` as they come, JSON lines")
	c.Flags().StringSliceVar(&gate.netlists, "netlist", nil, "with --class gate, only these `NETLISTS`")
	c.Flags().IntSliceVar(&gate.lanes, "lane", []int{0}, "with --class gate, `LANES` whose operands are taken, 32 · partition + lane; the worst is reported")
	c.Flags().IntVar(&gate.most, "operations", 8192, "with --class gate, take at most so `MANY` of each kernel")
	c.Flags().IntVar(&gate.prove, "prove", 0, "with --class gate, hold the netlists to the reference on so `MANY` operations instead")
	c.Flags().StringVar(&file, "faults", "", "read faults from `FILE`, JSON lines")
	c.Flags().Uint64Var(&draw, "draw", 0, "draw faults from this `SEED`")
	c.Flags().IntVarP(&n, "count", "n", 300, "draw this `MANY`")
	c.Flags().IntVar(&capability, "capability", 90, "of the simulated GPU: 10 · major + minor")
	c.Flags().StringSliceVar(&without, "without", nil, "leave these `KERNELS` out")
	c.Flags().BoolVar(&asJSON, "json", false, "print one line a fault, as JSON")
	return c
}

func campaignInput(file string, drawn bool, seed uint64, n, capability int, without []string) ([]ptxvm.Fault, campaign.Options, error) {
	o, err := campaignSuite(capability, without)
	var faults []error
	if err != nil {
		faults = append(faults, err)
	}
	if (file == "") == !drawn {
		faults = append(faults, errors.New("want --faults FILE or --draw SEED, one of them"))
	}
	if n < 1 || n > 1_000_000 {
		faults = append(faults, fmt.Errorf("-n %d: want 1 to 1000000", n))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, o, err
	}
	if drawn {
		fs, err := campaign.Draw(seed, n)
		return fs, o, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, o, err
	}
	fs, err := ptxvm.ParseFaults(data)
	return fs, o, err
}

// campaignSuite is every kernel, in the order of the intake suite, at reduced size, without the kernels named.
func campaignSuite(capability int, without []string) (campaign.Options, error) {
	o := campaign.Options{Size: golden.Reduced, Capability: capability, Seed: 1, SMs: 2}
	var faults []error
	leave := map[string]bool{}
	for _, w := range without {
		k, ok := kernels.Lookup(w)
		if !ok {
			faults = append(faults, fmt.Errorf("--without %q: no such kernel", w))
		}
		leave[k.ID] = true
	}
	s, err := golden.LookupSuite("intake")
	if err != nil {
		return o, err
	}
	for _, id := range s.Kernels {
		if !leave[id] {
			o.Kernels = append(o.Kernels, id)
		}
	}
	return o, errors.Join(faults...)
}
