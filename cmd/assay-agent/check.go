package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent"
	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/policy/policyfile"
	"github.com/assay-gpu/assay/cmd/internal/tab"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// checkTime bounds a check by hand: as long as the driver may take to hang in three children, and some.
const checkTime = 2 * time.Minute

func newCheck() *cobra.Command {
	var suite, from, policyFile string
	var only []string
	var asJSON bool
	c := &cobra.Command{
		Use: "check", Short: "Judge the hardware now, without a control plane", Args: usageArgs(cobra.NoArgs),
		Long: "Check reads the GPUs and this boot's kernel log once and judges them by the last policy received, with what most\n" +
			"nodes of its product show, or the built-in one.\n" +
			"XIDs that the driver raised through NVML and never wrote to the log are judged as the daemon heard them.\n" +
			"It asks DCGM's health watches and runs user checks where policy has that done; dcgmi diag and golden kernels load the\n" +
			"GPUs, so that what the daemon's last screen of this boot read of them is judged: the diagnostic with --suite standard.\n" +
			"By hand every check judges, whatever its mode: modes are for what acts by itself.\n" +
			"Exit status: 0 healthy, 1 a fault found, 2 something could not be tested.",
		Example: "  assay-agent check\n  assay-agent check --suite standard --json\n  assay-agent check --only ecc,rowremap\n  assay-agent check --from ./capture",
	}
	f := hardwareFlags(c)
	c.Flags().StringVar(&suite, "suite", "quick", "`SUITE` to run: quick or standard")
	c.Flags().StringSliceVar(&only, "only", nil, "only the checks with these `IDS`")
	c.Flags().StringVar(&from, "from", "", "judge the capture in `DIR` instead of this machine")
	c.Flags().StringVar(&policyFile, "policy", "", "judge by this policy `FILE`")
	c.Flags().BoolVar(&asJSON, "json", false, "print one finding a line, as JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := f.load()
		level, ferr := checkArgs(suite, only)
		if err := joinUsage(err, ferr); err != nil {
			return err
		}
		own, err := ownPolicy(policyFile)
		if err != nil {
			return err
		}
		capt, err := takeOrRead(c.Context(), cfg, from, own, c.ErrOrStderr())
		if err != nil {
			return err
		}
		tellDiag(c.ErrOrStderr(), capt, level)
		return judgeAndPrint(c.OutOrStdout(), capt, level, only, asJSON)
	}
	c.AddCommand(newCheckList(), newCheckExplain(), newCheckLog(time.Now), newCheckDCGM(), newCheckGolden(), newCheckUser(), newCheckImport())
	return c
}

// joinUsage makes one fault of usage of several.
func joinUsage(errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return usage(err)
	}
	return nil
}

func checkArgs(suite string, only []string) (checks.Level, error) {
	var level checks.Level
	var faults []error
	if suite != "quick" && suite != "standard" {
		faults = append(faults, fmt.Errorf("--suite %q: want quick or standard", suite))
	} else if err := level.UnmarshalText([]byte(suite)); err != nil {
		faults = append(faults, err)
	}
	for _, id := range only {
		if _, ok := catalog.Lookup(id); !ok {
			faults = append(faults, fmt.Errorf("--only %q: no such check; there are %s", id, strings.Join(catalog.IDs(), ", ")))
		}
	}
	return level, errors.Join(faults...)
}

// ownPolicy reads a policy file; nil when none is named.
func ownPolicy(file string) (*policy.Policy, error) {
	if file == "" {
		return nil, nil
	}
	p, err := loadPolicy(file)
	return &p, err
}

func loadPolicy(file string) (policy.Policy, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return policy.Policy{}, usage(err)
	}
	p, err := policyfile.Load(file, data)
	return p, usage(err)
}

// takeOrRead reads a capture, or takes one of this machine. own is the policy in its stead; nil: its own.
func takeOrRead(ctx context.Context, cfg config, from string, own *policy.Policy, stderr io.Writer) (agent.Capture, error) {
	if from != "" {
		c, err := agent.ReadCapture(from)
		if own != nil {
			c.Policy = *own
		}
		return c, usage(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkTime, fmt.Errorf("no answer within %s", checkTime))
	defer cancel()
	return takeCapture(ctx, cfg, own, stderr)
}

// takeCapture reads everything a check reads. What cannot be read is said in the capture, not in the error.
// own is the policy to read and judge by; nil: the last that the daemon had, or the built-in one.
func takeCapture(ctx context.Context, cfg config, own *policy.Policy, stderr io.Writer) (agent.Capture, error) {
	bootID, err := bootIDFile(cfg.BootID)()
	if err != nil {
		return agent.Capture{}, &exitError{exitUnknown, fmt.Errorf("boot id: %w", err)}
	}
	c := agent.Capture{CaptureMeta: agent.CaptureMeta{Node: cfg.Node, BootID: bootID, At: time.Now().UTC(), Version: version}, Policy: policy.Default()}
	// What the daemon last had from the control plane, if this user may read it.
	var kept struct{ Desired wire.Desired }
	if found, err := atomicfile.ReadJSON(cfg.StateDir+"/desired.json", &kept); err == nil && found {
		c.Policy, c.Expected, c.Learned = kept.Desired.Policy, kept.Desired.Expected, kept.Desired.Learned
	}
	if own != nil {
		c.Policy = *own
	}
	hw, err := openHardware(cfg, false, newLog(stderr, "error"))
	if err != nil {
		return c, err
	}
	defer hw.close()
	c.Tree = hw.tree
	known := checks.Inventory{GPUs: agent.KnownGPUs(cfg.StateDir)}
	here := c.Policy.ForNode(cfg.Node, policy.HardwareOf(known, c.Expected), c.Learned)
	hw.onPolicy(here)
	beside := make(chan catalog.Beside, 1)
	go func() { beside <- readBeside(ctx, cfg, hw, here, bootID) }()
	if c.Snapshot, err = hw.prober.Snapshot(ctx); err != nil {
		c.SnapshotErr = err.Error()
	}
	if c.Kernel, err = hw.dump(ctx); err != nil {
		c.KernelErr = err.Error()
	}
	c.Events = agent.DriverEvents(cfg.StateDir, bootID)
	c.Beside = <-beside
	return c, nil
}

// readBeside reads what policy has read beside the snapshot. What loads the GPUs is not run: of that, what the daemon's last
// screen of this boot read is taken.
func readBeside(ctx context.Context, cfg config, hw *hardware, p policy.Policy, bootID string) catalog.Beside {
	read := agent.ScreenReadings(cfg.StateDir, bootID)
	for _, s := range hw.asides() {
		s.Look(ctx, p, checks.Inventory{Node: cfg.Node, BootID: bootID}, checks.NoLevel)
		read = read.With(s.Readings())
	}
	return read
}

// tellDiag says of a diagnostic that it is not part of the suite.
func tellDiag(w io.Writer, c agent.Capture, level checks.Level) {
	if d := c.Beside.Diag; d != nil && level < checks.Standard && c.ForNode().Policy.DCGM.Screen > 0 {
		fmt.Fprintf(w, "dcgmi diag -r %d of %s is judged with --suite standard\n", d.Level, d.At.UTC().Format(time.RFC3339))
	}
}

// judgeAndPrint judges a capture, prints what it finds and returns the exit status.
func judgeAndPrint(w io.Writer, c agent.Capture, level checks.Level, only []string, asJSON bool) error {
	learned := c.Policy.Learned(c.Node, policy.HardwareOf(c.Snapshot.Inventory(), c.Expected), c.Learned)
	c = c.ForNode()
	// By hand every check judges and counts: the mode is for what acts by itself.
	c.Policy.Mode = policy.Act
	for id, k := range c.Policy.Checks {
		c.Policy.Checks[id] = policy.Check{Action: k.Action}
	}
	res := c.Judge(level)
	fs := res.Findings
	if len(only) > 0 {
		fs = slices.DeleteFunc(slices.Clone(fs), func(f checks.Finding) bool { return !slices.Contains(only, f.Check) })
	}
	verdict := checks.FoldFindings(fs)
	unasked := unasked(only, fs)
	switch {
	case len(unasked) > 0 && verdict != checks.Fail:
		verdict = checks.Unknown
	case len(only) > 0 && len(fs) == 0 && c.KernelErr == "":
		verdict = checks.Pass // checks of events that found none
	}
	var err error
	if asJSON {
		err = printJSON(w, fs)
	} else {
		err = printFindings(w, c, level, fs, verdict, learned)
	}
	if err != nil {
		return err
	}
	if len(unasked) > 0 && verdict == checks.Unknown {
		return &exitError{exitUnknown, fmt.Errorf("%s: not read: neither policy nor the daemon's last screen asked for it", strings.Join(unasked, ", "))}
	}
	return exitOf(verdict)
}

// unasked gives those of the checks named that read no log and that gave no finding: nobody asked for them.
func unasked(only []string, fs []checks.Finding) (out []string) {
	for _, id := range only {
		if !catalog.OfLog(id) && !slices.ContainsFunc(fs, func(f checks.Finding) bool { return f.Check == id }) {
			out = append(out, id)
		}
	}
	return out
}

func printJSON(w io.Writer, fs []checks.Finding) error {
	bw := bufio.NewWriter(w)
	enc := json.NewEncoder(bw)
	for _, f := range fs {
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	return bw.Flush()
}

// printFindings prints what is not well, one a line, then what of that was asked because most nodes of the product show it
// (learned) and no policy says otherwise, and then the verdict.
func printFindings(w io.Writer, c agent.Capture, level checks.Level, fs []checks.Finding, verdict checks.Verdict, learned []string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range fs {
		if f.Verdict == checks.Pass && f.Action == checks.None || f.Verdict == checks.NotApplicable && f.Action == checks.None {
			continue
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", f.Verdict, f.Action, findingText(f))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, value := range learned {
		section, _, _ := strings.Cut(value, ".")
		if slices.ContainsFunc(fs, func(f checks.Finding) bool {
			return f.Check == section && f.Verdict != checks.Pass && f.Verdict != checks.NotApplicable
		}) {
			fmt.Fprintf(w, "%s is what most nodes of this product show; policy leaves it open\n", value)
		}
	}
	tested, not := catalog.Coverage(level, fs)
	_, err := fmt.Fprintf(w, "%s: %s: %d GPUs, %d checks tested", c.Node, verdict, len(c.Snapshot.GPUs), len(tested))
	if err == nil && len(not) > 0 && len(tested) > 0 {
		_, err = fmt.Fprintf(w, ", not tested: %s", strings.Join(not, " "))
	}
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

func findingText(f checks.Finding) string {
	where := string(f.Subject.Kind)
	switch {
	case f.Subject.GPUIndex != nil:
		where = fmt.Sprintf("GPU %d", *f.Subject.GPUIndex)
	case f.Subject.Kind == checks.KindPort && f.Subject.Port != "":
		where = f.Subject.Port
	case f.Subject.PCI != "":
		where = f.Subject.PCI
	}
	text := fmt.Sprintf("%s %s: %s", f.Check, where, f.Reason)
	if f.Count > 1 {
		text += fmt.Sprintf(" (%d times)", f.Count)
	}
	if f.Secondary {
		text += " (follows from another)"
	}
	return text
}

func newCheckList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List every check", Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, k := range catalog.All() {
				fmt.Fprintf(tw, "%s\t%s\t%s\n", k.ID, k.Title, k.Action)
			}
			return tw.Flush()
		},
	}
}

func newCheckExplain() *cobra.Command {
	return &cobra.Command{
		Use: "explain ID", Short: "Say what a check reads, by what rule it judges, and where the rule is from", Args: usageArgs(cobra.ExactArgs(1)),
		Example: "  assay-agent check explain rowremap",
		ValidArgsFunction: func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return tab.Begin(catalog.IDs(), word), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			text, ok := catalog.Explain(args[0])
			if !ok {
				return usage(fmt.Errorf("check %q: no such check; there are %s", args[0], strings.Join(catalog.IDs(), ", ")))
			}
			_, err := io.WriteString(c.OutOrStdout(), text)
			return err
		},
	}
}
