package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/policy/policyfile"
	"github.com/assay-gpu/assay/coordinator/client"
)

func (a *app) policyCmd() *cobra.Command {
	return a.groupCmd("policy", "Show and set thresholds, modes and budgets", "  assay policy show > policy.yaml\n  assay policy apply policy.yaml",
		a.policyShowCmd(), a.policyApplyCmd())
}

func (a *app) policyShowCmd() *cobra.Command {
	return a.command(spec{
		use: "show", short: "Print the policy in force, in the form that apply reads", args: cobra.NoArgs,
		example: "  assay policy show > policy.yaml",
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			p, err := c.Policy(ctx)
			if err != nil {
				return err
			}
			if a.output == "json" {
				return a.emit(p, nil)
			}
			fmt.Fprintf(a.err, "policy version %d\n", p.Version)
			_, err = a.out.Write(policyfile.Print(p))
			return err
		},
	})
}

func (a *app) policyApplyCmd() *cobra.Command {
	var dry bool
	return a.command(spec{
		use: "apply FILE", short: "Put a policy file in force", args: cobra.ExactArgs(1),
		long: `The file is checked whole first: every fault in it is listed with its line, and nothing is changed. What the file
does not set has its default. The lines that change are printed before they do.`,
		example: `  assay policy apply policy.yaml --dry-run
  assay policy apply policy.yaml`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&dry, "dry-run", false, "check the file and print what would change")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			data, err := os.ReadFile(args[0])
			if err != nil {
				return &usageError{err.Error(), ""}
			}
			want, err := policyfile.Load(args[0], data)
			if err != nil {
				return &usageError{err.Error(), "nothing was changed"}
			}
			have, err := c.Policy(ctx)
			if err != nil {
				return err
			}
			changes := lineDiff(string(policyfile.Print(have)), string(policyfile.Print(want)))
			for _, l := range changes {
				fmt.Fprintln(a.err, l)
			}
			if len(changes) == 0 {
				fmt.Fprintf(a.err, "nothing changes; policy version %d stays in force\n", have.Version)
				return a.emit(have, func() error { return nil })
			}
			if dry {
				fmt.Fprintln(a.err, "dry run: nothing was changed")
				return nil
			}
			now, err := c.SetPolicy(ctx, want)
			if err != nil {
				return err
			}
			return a.emit(now, func() error { return a.policyDone(now) })
		},
	})
}

func (a *app) policyDone(p policy.Policy) error {
	_, err := fmt.Fprintf(a.out, "policy version %d is in force, mode %s\n", p.Version, p.Mode)
	return err
}

// lineDiff lists the lines of two policies in print form that differ, each with the section it stands in. Print writes
// every field in one order, so lines are told apart by their path.
func lineDiff(old, new string) []string {
	was, order := byPath(old)
	is, more := byPath(new)
	for _, p := range more {
		if _, ok := was[p]; !ok {
			order = append(order, p)
		}
	}
	var out []string
	for _, p := range order {
		a, had := was[p]
		b, has := is[p]
		if had && (!has || a != b) {
			out = append(out, "- "+p+": "+a)
		}
		if has && (!had || a != b) {
			out = append(out, "+ "+p+": "+b)
		}
	}
	return out
}

// byPath reads block YAML of nested mappings with scalar or flow values into path → value, with the order of paths.
func byPath(text string) (map[string]string, []string) {
	values := map[string]string{}
	var order []string
	type level struct {
		indent int
		key    string
	}
	var stack []level
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		body := strings.TrimLeft(line, " ")
		if body == "" || body[0] == '#' {
			continue
		}
		indent := len(line) - len(body)
		for len(stack) > 0 && stack[len(stack)-1].indent >= indent {
			stack = stack[:len(stack)-1]
		}
		key, value, _ := strings.Cut(body, ":")
		value, _, _ = strings.Cut(value, " #")
		value = strings.TrimSpace(value)
		stack = append(stack, level{indent, key})
		if value == "" {
			continue
		}
		path := make([]string, len(stack))
		for i, l := range stack {
			path[i] = l.key
		}
		p := strings.Join(path, ".")
		if _, dup := values[p]; !dup {
			order = append(order, p)
		}
		values[p] = value
	}
	return values, order
}
