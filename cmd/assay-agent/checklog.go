package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/probe/sysfs"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/kernlog"
	"github.com/assay-gpu/assay/checks/logtext"
	"github.com/assay-gpu/assay/checks/policy"
)

// newCheckLog makes the command. now tells the year of times that have none.
func newCheckLog(now func() time.Time) *cobra.Command {
	var asJSON bool
	var policyFile, sysfsDir string
	c := &cobra.Command{
		Use: "log FILE", Short: "Judge a kernel log, of this machine or another", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "Log judges what a kernel log says: XIDs and SXids, PCIe errors, the GPU driver's, network cards' and the host's own lines.\n" +
			"FILE is what dmesg (with or without -T, -x, -H, --color and --time-format), journalctl -k (-o short, short-iso, short-precise, verbose,\n" +
			"json or export) or /dev/kmsg give, or a file of syslog's; - reads standard input. Repeats are counted, and lines with one root cause grouped.\n" +
			"Text as dmesg and syslog print it does not keep messages apart: a user may have put a line into it by the name of a file. Raw kmsg,\n" +
			"dmesg -J and the journal's json, export and verbose do.\n" +
			"Where the text tells of several boots of a machine, what was logged before the last is shown as past and is no fault.\n" +
			"Exit status: 0 no fault, 1 a fault found, 2 the text could not be read to its end, is no kernel log, or holds an XID whose number is lost.",
		Example: "  dmesg | assay-agent check log --sysfs /sys -\n  journalctl -k -b all -o export | assay-agent check log --json -\n  assay-agent check log ./node-a.dmesg",
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one finding a line, as JSON; a time in the year 1 counts from the boot")
	c.Flags().StringVar(&policyFile, "policy", "", "judge by this policy `FILE`")
	c.Flags().StringVar(&sysfsDir, "sysfs", "", "sysfs `DIR` of the machine that the log is of: tells which GPU is below a PCIe port")
	c.RunE = func(c *cobra.Command, args []string) error {
		p := policy.Default()
		if policyFile != "" {
			var err error
			if p, err = loadPolicy(policyFile); err != nil {
				return err
			}
		}
		// By hand every check judges and counts: the mode is for what acts by itself.
		p.Mode, p.Checks = policy.Act, nil
		in := c.InOrStdin()
		if args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return usage(err)
			}
			defer f.Close()
			in = f
		}
		var tree aer.Tree
		if sysfsDir != "" {
			tree = sysfs.PCITree(sysfsDir)
		}
		o := logtext.Options{Now: now(), Local: now().Location(), Want: kernlog.Holds}
		return checkLog(c.OutOrStdout(), logtext.NewReader(in, o), tree, p, asJSON)
	}
	return c
}

// checkLog reads a log to its end, prints what it says, and returns the exit status.
func checkLog(w io.Writer, r *logtext.Reader, tree aer.Tree, p policy.Policy, asJSON bool) error {
	fold := catalog.NewLogFold(checks.Inventory{}, tree, p)
	events := 0
	var readErr error
	for {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			readErr = err
			break
		}
		if fold.Add(l.Text, l.Whole, l.At, l.Boot) {
			events++
		}
	}
	fs := fold.Findings(r.Past)
	doubt := logDoubt(r, fold, fs, events, readErr)
	var err error
	if asJSON {
		err = printJSON(w, fs)
	} else {
		err = printLog(w, r, fs, doubt)
	}
	switch {
	case err != nil:
		return err
	case checks.FoldFindings(fs) == checks.Fail:
		return &exitError{exitFault, doubt}
	case doubt != nil:
		return &exitError{exitUnknown, doubt}
	}
	return nil
}

// logDoubt says why a log without a fault proves nothing.
func logDoubt(r *logtext.Reader, fold *catalog.LogFold, fs []checks.Finding, events int, readErr error) error {
	unread := 0
	for _, f := range fs {
		if f.Verdict == checks.Unknown {
			unread += max(f.Count, 1)
		}
	}
	switch {
	case errors.Is(readErr, io.ErrUnexpectedEOF):
		return errors.New("log: the text ends within a record")
	case readErr != nil:
		return readErr
	case r.Broken > 0:
		return fmt.Errorf("log: %d records that may matter are not whole", r.Broken)
	case unread == 1:
		return errors.New("log: it holds a line of the driver's whose number cannot be read")
	case unread > 1:
		return fmt.Errorf("log: it holds %d lines of the driver's whose number cannot be read", unread)
	case r.Lines == 0:
		return errors.New("log: there is nothing in it")
	case r.Known == 0 && events == 0:
		return errors.New("log: no line looks as tools print the kernel log")
	case fold.Left > 0:
		return fmt.Errorf("log: it names too many different things; %d findings were left out", fold.Left)
	}
	return nil
}

// printLog prints what a log says, one finding a line, and then how many incidents of it are faults.
func printLog(w io.Writer, r *logtext.Reader, fs []checks.Finding, doubt error) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	faults, notes := 0, 0
	for _, f := range fs {
		switch {
		case f.Verdict == checks.Fail && !f.Secondary:
			faults++
		case f.Action != checks.None && !f.Secondary:
			notes++
		}
		if f.Action == checks.None && f.Verdict != checks.Fail {
			continue
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", logTime(f), f.Verdict, f.Action, findingText(f))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	verdict := "no fault"
	switch {
	case faults == 1:
		verdict = "1 fault"
	case faults > 1:
		verdict = fmt.Sprintf("%d faults", faults)
	case doubt != nil:
		verdict = "unknown"
	}
	text := fmt.Sprintf("%d lines: %s", r.Lines, verdict)
	if notes > 0 {
		text += fmt.Sprintf(", %d more to know of", notes)
	}
	if r.Foreign > 0 {
		text += fmt.Sprintf("; %d lines of other programs than the kernel left aside", r.Foreign)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// logTime is when a line was logged, as far as the text says.
func logTime(f checks.Finding) string {
	at := "-"
	switch {
	case f.At.IsZero():
	case logtext.Relative(f.At):
		at = fmt.Sprintf("+%.6fs", f.At.Sub(time.Time{}).Seconds())
	default:
		at = f.At.UTC().Format("2006-01-02T15:04:05Z")
	}
	return at
}
