package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/vectors"
)

func newGoldenVectors() *cobra.Command {
	var dir, sizeName string
	var seeds []int
	var names []string
	var asJSON bool
	c := &cobra.Command{
		Use: "vectors", Short: "Write inputs, kernels and goldens as a folder that other tools can use", Args: usageArgs(cobra.NoArgs),
		Long: "Vectors writes each kernel's PTX and source, its inputs and goldens as plain little-endian words, a manifest with digests, and a\n" +
			"README.md that says all that is needed to use them. Every golden is computed here and held to the embedded one.",
		Example: "  assay-agent golden vectors -o vectors\n  assay-agent golden vectors -o vectors --size full --seed 0,1 --kernel K1,K18\n  assay-agent golden vectors verify vectors",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := vectorOptions(dir, sizeName, seeds, names)
			if err != nil {
				return usage(err)
			}
			m, err := vectors.Write(c.Context(), dir, o)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(m)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: format %d, %d kernels, %d seeds of each, %d files\n", dir, m.Format, len(m.Kernels), len(seeds), len(m.Files)+1)
			return err
		},
	}
	c.Flags().StringVarP(&dir, "output", "o", "", "write into `DIR`, which must be empty or not there")
	c.Flags().StringVar(&sizeName, "size", "reduced", "full, as GPUs run it, or reduced")
	c.Flags().IntSliceVar(&seeds, "seed", []int{0, 1, 2, 3}, "these `SEEDS`, 0 to 63")
	c.Flags().StringSliceVar(&names, "kernel", nil, "only these `KERNELS`")
	c.Flags().BoolVar(&asJSON, "json", false, "print the manifest")
	_ = c.MarkFlagDirname("output") // it is defined above
	c.AddCommand(newVectorsVerify())
	return c
}

func vectorOptions(dir, sizeName string, seeds []int, names []string) (vectors.Options, error) {
	o := vectors.Options{By: "assay-agent " + version, Seeds: seeds}
	var faults []error
	if dir == "" {
		faults = append(faults, errors.New("-o is missing: where should the vectors go?"))
	}
	size, err := golden.SizeOf(sizeName)
	o.Size = size
	faults = append(faults, err)
	for i, s := range seeds {
		if s < 0 || s >= golden.Seeds || slices.Contains(seeds[:i], s) {
			faults = append(faults, fmt.Errorf("--seed %d: want each of 0 to %d once", s, golden.Seeds-1))
		}
	}
	o.Kernels = kernels.All()
	if len(names) > 0 {
		o.Kernels = nil
	}
	for _, n := range names {
		k, ok := kernels.Lookup(n)
		if !ok {
			faults = append(faults, fmt.Errorf("--kernel %q: no such kernel; golden list shows all", n))
		}
		o.Kernels = append(o.Kernels, k)
	}
	return o, errors.Join(faults...)
}

func newVectorsVerify() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "verify DIR", Short: "Hold a folder of vectors to its manifest", Args: usageArgs(cobra.ExactArgs(1)),
		Long:    "Verify holds every file to its digest and every vector to its kernel. Exit status: 0 all is as the manifest says, 1 it is not.",
		Example: "  assay-agent golden vectors verify vectors",
		RunE: func(c *cobra.Command, args []string) error {
			m, wrong, err := vectors.Verify(args[0])
			if err != nil {
				return usage(err)
			}
			if asJSON {
				if err := json.NewEncoder(c.OutOrStdout()).Encode(map[string]any{"format": m.Format, "kernels": len(m.Kernels), "files": len(m.Files), "wrong": wrong}); err != nil {
					return err
				}
			} else {
				for _, w := range wrong {
					fmt.Fprintln(c.OutOrStdout(), w)
				}
				fmt.Fprintf(c.OutOrStdout(), "%d kernels, %d files; %d things are not as the manifest says\n", len(m.Kernels), len(m.Files), len(wrong))
			}
			if len(wrong) > 0 {
				return &exitError{code: exitFault}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print what is wrong as JSON")
	return c
}
