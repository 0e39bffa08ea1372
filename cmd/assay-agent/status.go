package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent"
	"github.com/assay-gpu/assay/agent/socket"
	"github.com/assay-gpu/assay/checks"
)

func newStatus() *cobra.Command {
	var runDir, path, node string
	var asJSON bool
	c := &cobra.Command{
		Use: "status", Short: "Ask the running daemon where it stands", Args: usageArgs(cobra.NoArgs),
		Long: "Status exits 0 when the last look at the hardware found no fault, 1 when a fault is known, 2 when it cannot be told.\n" +
			"Whether a prolog would pass on the certificate now is the line fast path.",
		Example: "  assay-agent status\n  assay-agent status --node gpu001 --json",
	}
	c.Flags().StringVar(&runDir, "run-dir", defaults().RunDir, "where the sockets are: `DIR`")
	c.Flags().StringVar(&path, "socket", "", "socket `PATH` (default RUN_DIR/NODE.sock, else RUN_DIR/agent.sock)")
	c.Flags().StringVar(&node, "node", "", "the node's `NAME`, where several agents run on one host")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
		defer cancel()
		at := socketPath(runDir, path, node)
		_, text, err := socket.Ask(ctx, at, "status", nil)
		if err != nil {
			return &exitError{exitUnknown, &noAgentError{at, err}}
		}
		var st agent.Status
		if err := json.Unmarshal([]byte(text), &st); err != nil {
			return &exitError{exitUnknown, fmt.Errorf("status: the agent's answer is no JSON: %w", err)}
		}
		if asJSON {
			_, err = io.WriteString(c.OutOrStdout(), text)
		} else {
			err = printStatus(c.OutOrStdout(), st)
		}
		if err != nil {
			return err
		}
		switch {
		case st.Verdict == checks.Fail || len(st.OpenFaults) > 0:
			return &exitError{code: exitFault}
		case st.Verdict != checks.Pass:
			return &exitError{code: exitUnknown}
		}
		return nil
	}
	return c
}

type noAgentError struct {
	path string
	err  error
}

func (e *noAgentError) Error() string {
	return fmt.Sprintf("no agent answers on %s: %v", e.path, e.err)
}
func (e *noAgentError) Unwrap() error { return e.err }
func (e *noAgentError) Hint() string {
	return "is it running? systemctl status assay-agent; where several run on one host, name one with --node"
}

func printStatus(w io.Writer, st agent.Status) error {
	var b strings.Builder
	row := func(k, format string, args ...any) { fmt.Fprintf(&b, "%-12s %s\n", k, fmt.Sprintf(format, args...)) }
	state := st.State
	switch {
	case !st.Enrolled:
		state = "not enrolled"
	case !st.Managed:
		state += " (not managed)"
	}
	if len(st.Marks) > 0 {
		state += " (" + strings.Join(st.Marks, ", ") + ")"
	}
	row("node", "%s, %s", st.Node, state)
	row("mode", "%s, policy %d", st.Mode, st.Policy)
	row("certificate", "%s", certificateText(st))
	fast := "yes, on the certificate"
	if !st.FastPath {
		fast = "no: " + st.Why
	}
	row("fast path", "%s", fast)
	row("hardware", "%d GPUs, %s, read %s", len(st.GPUs), st.Verdict, age(st.SnapshotAge))
	row("kernel log", "%s", kernelText(st.Kernel))
	row("control", "heard %s, %d reports unsent", age(st.ContactAge), st.Unsent)
	if len(st.Jobs) > 0 {
		row("jobs", "%s", strings.Join(st.Jobs, " "))
	}
	for _, f := range st.Faults {
		row("fault", "%s", findingText(f))
	}
	for _, f := range st.OpenFaults {
		row("unanswered", "%s", findingText(f))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func certificateText(st agent.Status) string {
	c := st.Certificate
	if c == nil {
		return "none"
	}
	text := fmt.Sprintf("%d, %s, %d GPUs, %s left", c.Serial, c.Level, c.GPUs, span(c.Remaining))
	if c.Remaining == 0 {
		text += fmt.Sprintf(" (grace %s)", span(c.GraceRemaining))
	}
	if c.Suspended {
		text += ", suspended"
	}
	if c.Untrusted != "" {
		text += ", untrusted: " + c.Untrusted
	}
	if st.Tombstone != nil && st.Tombstone.Serial >= c.Serial {
		text += ", void: " + st.Tombstone.Reason
	}
	return text
}

func kernelText(k agent.StatusKernel) string {
	switch {
	case k.Err != "":
		return "not read: " + k.Err
	case !k.Drained:
		return fmt.Sprintf("%d records read, not to its end", k.Records)
	case k.Lost > 0:
		return fmt.Sprintf("read to its end, %d records; %d lost", k.Records, k.Lost)
	}
	return fmt.Sprintf("read to its end, %d records", k.Records)
}

func span(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

func age(seconds *float64) string {
	if seconds == nil {
		return "never"
	}
	return span(*seconds) + " ago"
}
