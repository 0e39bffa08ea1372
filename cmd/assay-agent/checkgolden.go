package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/bandwidth"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/sdc"
)

// maxGoldenText bounds the results that are read, in bytes. Eight GPUs with a soak's stages are some 20 MiB.
const maxGoldenText = 256 << 20

func newCheckGolden() *cobra.Command {
	var asJSON bool
	var policyFile string
	c := &cobra.Command{
		Use: "golden FILE|-", Short: "Judge what golden run --json printed", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "Golden reads results, one a line, and judges them by policy: which kernels count for which capability, and, of results that\n" +
			"hold copies to and from the host, how fast those were.\n" +
			"Exit status: 0 every SM verified, 1 a fault found, 2 something was not tested.",
		Example: "  assay-agent golden run --json | assay-agent check golden -",
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one finding a line, as JSON")
	c.Flags().StringVar(&policyFile, "policy", "", "judge by this policy `FILE`")
	c.RunE = func(c *cobra.Command, args []string) error {
		p, err := byHand(policyFile)
		if err != nil {
			return err
		}
		text, err := readInput(c.InOrStdin(), args[0], maxGoldenText)
		if err != nil {
			return usage(err)
		}
		fs, err := judgeGolden(text, p)
		if err != nil {
			return usage(fmt.Errorf("%s: %w", args[0], err))
		}
		return printSide(c.OutOrStdout(), args[0], fs, asJSON)
	}
	return c
}

func judgeGolden(text string, p policy.Policy) ([]checks.Finding, error) {
	rs, err := readResults(text)
	if err != nil {
		return nil, err
	}
	var fs []checks.Finding
	var copied []bandwidth.GPU
	for i, r := range rs {
		gpu := checks.GPU{UUID: r.GPU.UUID, Index: i, PCI: r.GPU.PCI, Name: r.GPU.Name}
		fs = append(fs, sdc.Judge(gpu, sdc.Reading{Have: checks.Read, Result: r}, p.Golden))
		if b := bandwidth.Of(r); b.Have != checks.Unread || b.Tried {
			copied = append(copied, bandwidth.GPU{GPU: gpu, Reading: b})
		}
	}
	return append(fs, bandwidth.Judge(copied, p.Bandwidth, p.PCIe.Width)...), nil
}
