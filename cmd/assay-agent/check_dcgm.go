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
	var o dcgmOptions
	c := &cobra.Command{
		Use: "dcgm FILE|-", Short: "Judge what DCGM says: the output of dcgmi diag, or its health watches", Args: usageArgs(cobra.MaximumNArgs(1)),
		Long: "Dcgm reads what `dcgmi diag` wrote, JSON (-j) of DCGM 2.x to 4.6 or the table for people, and judges it. A test that was\n" +
			"skipped, or that passed and complains, proves nothing. With --run it runs the diagnostic itself, which loads the GPUs; with\n" +
			"--health it asks the health watches, the way policy says or through the host engine.\n" +
			"Exit status: 0 healthy, 1 a fault found, 2 something was not tested or could not be read.",
		Example: "  dcgmi diag -j -r 2 | assay-agent check dcgm -\n  assay-agent check dcgm --json diag.json\n  assay-agent check dcgm --run 1\n  assay-agent check dcgm --health",
	}
	f := hardwareFlags(c)
	c.Flags().BoolVar(&o.json, "json", false, "print one finding a line, as JSON")
	c.Flags().IntVar(&o.exit, "exit-status", -1, "the exit status `N` that dcgmi ended with, if it is known")
	c.Flags().StringVar(&o.policy, "policy", "", "judge by this policy `FILE`")
	c.Flags().IntVar(&o.run, "run", 0, "run the diagnostic of this `LEVEL`, 1 to 4, now")
	c.Flags().BoolVar(&o.health, "health", false, "ask the health watches now")
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := f.load()
		if err := joinUsage(err, o.check(c, args)); err != nil {
			return err
		}
		if len(args) == 1 {
			return o.judge(c, args[0])
		}
		return o.ask(c, cfg)
	}
	return c
}

// dcgmOptions are the flags of check dcgm.
type dcgmOptions struct {
	json, health bool
	exit, run    int
	policy       string
}

// check gives every fault of the flags.
func (o dcgmOptions) check(c *cobra.Command, args []string) error {
	var faults []error
	given := len(args)
	if c.Flags().Changed("run") {
		given++
		if o.run < 1 || o.run > 4 {
			faults = append(faults, fmt.Errorf("--run %d: want 1 to 4", o.run))
		}
	}
	if o.health {
		given++
	}
	if given != 1 {
		faults = append(faults, errors.New("want one of FILE, - for standard input, --run LEVEL and --health"))
	}
	if c.Flags().Changed("exit-status") && (o.exit < 0 || o.exit > 255) {
		faults = append(faults, fmt.Errorf("--exit-status %d: want 0 to 255", o.exit))
	}
	if o.policy != "" {
		if _, err := loadPolicy(o.policy); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// judge judges an output of the diagnostic, from whatever node it is.
func (o dcgmOptions) judge(c *cobra.Command, file string) error {
	p, err := byHand(o.policy)
	if err != nil {
		return err
	}
	text, err := readInput(c.InOrStdin(), file, maxDiagText)
	if err != nil {
		return usage(err)
	}
	r := dcgm.Parse(text)
	if o.exit >= 0 {
		r.Exit = &o.exit
	}
	return printSide(c.OutOrStdout(), file, catalog.JudgeDCGM(r, checks.Inventory{}, p), o.json)
}

// ask asks DCGM on this node.
func (o dcgmOptions) ask(c *cobra.Command, cfg config) error {
	p, known, err := lastPolicy(cfg, o.policy)
	if err != nil {
		return err
	}
	prober := newDCGM(cfg)
	if o.run > 0 {
		return printSide(c.OutOrStdout(), cfg.Node, catalog.JudgeDCGM(prober.Diag(c.Context(), o.run, p).Report(), known, p), o.json)
	}
	if p.DCGM.Health == "off" {
		p.DCGM.Health = "standalone"
	}
	return printSide(c.OutOrStdout(), cfg.Node, catalog.JudgeDCGMHealth(prober.Health(c.Context(), p), known, p), o.json)
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
