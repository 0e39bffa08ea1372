package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/dcgm"
	"github.com/assay-gpu/assay/checks/policy"
)

// maxDiagText bounds the output of a diagnostic that is read, in bytes. That of eight GPUs at level 4 is some 100 KiB.
const maxDiagText = 16 << 20

func newCheckDCGM() *cobra.Command {
	var asJSON bool
	var exit int
	var policyFile string
	c := &cobra.Command{
		Use: "dcgm FILE|-", Short: "Judge the output of dcgmi diag", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "Dcgm reads what `dcgmi diag` wrote, JSON (-j) of DCGM 2.x to 4.6 or the table for people, and judges it. A test that was\n" +
			"skipped, or that passed and complains, proves nothing.\n" +
			"Exit status: 0 healthy, 1 a fault found, 2 something was not tested or could not be read.",
		Example: "  dcgmi diag -j -r 2 | assay-agent check dcgm -\n  assay-agent check dcgm --json diag.json",
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one finding a line, as JSON")
	c.Flags().IntVar(&exit, "exit-status", -1, "the exit status `N` that dcgmi ended with, if it is known")
	c.Flags().StringVar(&policyFile, "policy", "", "judge by this policy `FILE`")
	c.RunE = func(c *cobra.Command, args []string) error {
		var bad error
		if c.Flags().Changed("exit-status") && (exit < 0 || exit > 255) {
			bad = fmt.Errorf("--exit-status %d: want 0 to 255", exit)
		}
		p, perr := byHand(policyFile)
		if err := joinUsage(bad, perr); err != nil {
			return err
		}
		text, err := readInput(c.InOrStdin(), args[0], maxDiagText)
		if err != nil {
			return usage(err)
		}
		r := dcgm.Parse(text)
		if exit >= 0 {
			r.Exit = &exit
		}
		return printSide(c.OutOrStdout(), args[0], catalog.JudgeDCGM(r, checks.Inventory{}, p), asJSON)
	}
	return c
}

// byHand is the policy of a check by hand: the file's, or the built-in one, with every check judging.
func byHand(file string) (policy.Policy, error) {
	p := policy.Default()
	if file != "" {
		var err error
		if p, err = loadPolicy(file); err != nil {
			return p, err
		}
	}
	p.Mode, p.Checks = policy.Act, nil
	return p, nil
}

// readInput reads a file, or standard input for "-", of limit bytes at most.
func readInput(stdin io.Reader, name string, limit int64) (string, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = errors.New("more than the output of a tool can be")
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return string(b), nil
}

// printSide prints the findings of a check that reads no snapshot, and returns the exit status.
func printSide(w io.Writer, what string, fs []checks.Finding, asJSON bool) error {
	now := time.Now().UTC()
	for i := range fs {
		fs[i].At = now
	}
	verdict := checks.FoldFindings(fs)
	if asJSON {
		if err := printJSON(w, fs); err != nil {
			return err
		}
		return exitOf(verdict)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range fs {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", f.Verdict, f.Action, findingText(f))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s: %s\n", what, verdict); err != nil {
		return err
	}
	return exitOf(verdict)
}

// exitOf is the exit status that says a verdict.
func exitOf(v checks.Verdict) error {
	switch v {
	case checks.Pass:
		return nil
	case checks.Fail:
		return &exitError{code: exitFault}
	}
	return &exitError{code: exitUnknown}
}
