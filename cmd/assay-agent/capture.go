package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func newCapture() *cobra.Command {
	var out, policyFile string
	var redact bool
	c := &cobra.Command{
		Use: "capture -o DIR", Short: "Write all that a check reads, to judge elsewhere", Args: usageArgs(cobra.NoArgs),
		Long: "Capture writes what was read from the driver, the kernel log, DCGM's health watches and user checks, the XIDs that the\n" +
			"daemon heard through NVML, what the last screen read of dcgmi diag and golden kernels, and the policy, as files. `assay-agent check --from DIR` judges them again, anywhere,\n" +
			"with the same findings. --redact replaces names, serials and UUIDs by made-up ones, and leaves out process names,\n" +
			"addresses, and what user checks say and are given.",
		Example: "  assay-agent capture -o ./gpu001-capture --redact",
	}
	f := hardwareFlags(c)
	c.Flags().StringVarP(&out, "output", "o", "", "`DIR` to write to")
	c.Flags().StringVar(&policyFile, "policy", "", "read and judge by this policy `FILE`")
	c.Flags().BoolVar(&redact, "redact", false, "leave out what names this machine, its parts and its users")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := f.load()
		var missing error
		if out == "" {
			missing = errors.New("no -o DIR to write to")
		}
		if err := joinUsage(err, missing); err != nil {
			return err
		}
		own, err := ownPolicy(policyFile)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(c.Context(), checkTime, fmt.Errorf("no answer within %s", checkTime))
		defer cancel()
		capt, err := takeCapture(ctx, cfg, own, c.ErrOrStderr())
		if err != nil {
			return err
		}
		if redact {
			salt := make([]byte, 16)
			_, _ = rand.Read(salt) // never fails
			if capt, err = capt.Redact(salt); err != nil {
				return err
			}
		}
		refs, err := capt.Write(out)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%d files in %s; judge them with: assay-agent check --from %s\n", len(refs), out, out)
		return err
	}
	return c
}
