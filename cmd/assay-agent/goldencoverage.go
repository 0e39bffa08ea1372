package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/golden"
)

func newGoldenCoverage() *cobra.Command {
	var arch string
	var asJSON bool
	c := &cobra.Command{
		Use: "coverage FILE|-", Short: "Show what a run has verified, or what a kind of GPU would run", Args: usageArgs(cobra.MaximumNArgs(1)),
		Long: "Coverage reads what golden run --json printed. Each cell is a kernel on an SM: how many of its four partitions were verified,\n" +
			"x for a wrong result, - for not tested, . for a kernel that this GPU cannot run. A test of copies is one cell, of the whole GPU.\n" +
			"What is not verified is not tested. Below is how long each unit was under load, as a mean over the SMs, by the GPU's own timer;\n" +
			"only time at 90 % of the highest SM clock and above counts against faults that show at speed.\n\n" +
			"With --arch it lists what a GPU of that compute capability runs: of each kernel audited machine code, and what the gate has\n" +
			"found in it, or PTX that the driver assembles; and what is not covered.",
		Example: "  assay-agent golden run --json | assay-agent golden coverage -\n  assay-agent golden coverage --arch sm_80",
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case (arch == "") != (len(args) == 1):
				return usage(errors.New("coverage is of a result, FILE or -, or of a kind of GPU, --arch: one of them"))
			case arch != "":
				return printArch(c.OutOrStdout(), arch, asJSON)
			case asJSON:
				return usage(errors.New("--json goes with --arch"))
			}
			in := c.InOrStdin()
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return usage(err)
				}
				defer f.Close()
				in = f
			}
			return printCoverage(c.OutOrStdout(), in)
		},
	}
	c.Flags().StringVar(&arch, "arch", "", "what runs on GPUs of this compute capability, `sm_NN`")
	c.Flags().BoolVar(&asJSON, "json", false, "with --arch: one kernel a line, as JSON")
	return c
}

func printCoverage(w io.Writer, in io.Reader) error {
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	complete, n := true, 0
	for {
		var r golden.Result
		err := dec.Decode(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return usage(fmt.Errorf("result %d: %w", n+1, err))
		}
		n++
		m := golden.Cover(r)
		if _, err := fmt.Fprintf(w, "%s: %d of %d cells verified\n", r.GPU.UUID, m.Verified, m.Cells); err != nil {
			return err
		}
		complete = complete && m.Verified == m.Cells && m.Cells > 0
		tw := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.AlignRight)
		fmt.Fprint(tw, "SM\t")
		for sm := range r.GPU.SMs {
			fmt.Fprintf(tw, "%d\t", sm)
		}
		fmt.Fprintln(tw)
		for _, row := range m.Rows {
			fmt.Fprintf(tw, "%s\t", row.Kernel)
			for _, c := range row.SMs {
				fmt.Fprintf(tw, "%s\t", c)
			}
			fmt.Fprintln(tw)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		for _, c := range m.Copies {
			text := c.Kernel
			if c.Peer != "" {
				text += " " + c.Peer
			}
			if _, err := fmt.Fprintf(w, "%s %s\n", text, c.Cell); err != nil {
				return err
			}
		}
		if err := printExposure(w, r); err != nil {
			return err
		}
	}
	if n == 0 || !complete {
		return &exitError{code: exitUnknown}
	}
	return nil
}
