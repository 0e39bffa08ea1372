package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assay-gpu/assay/coordinator/client"
)

func (a *app) manCmd() *cobra.Command {
	var root *cobra.Command
	return a.command(spec{
		use: "man DIR", short: "Write the manual pages of all commands into a directory", args: cobra.ExactArgs(1), local: true,
		example: "  assay man /usr/share/man/man1",
		flags:   func(cmd *cobra.Command) { root = cmd },
		run: func(_ context.Context, _ *client.Client, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeMan(root.Root(), args[0])
		},
	})
}

// writeMan writes one page for a command and for each under it.
func writeMan(cmd *cobra.Command, dir string) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(manPage(cmd)), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "completion" {
			continue
		}
		if err := writeMan(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// manPage is a command's page in man(7) form. Cobra's own generator would bring a Markdown parser and a YAML library.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"assay %s\" \"User Commands\"\n", strings.ToUpper(roff(name)), roff(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	for i, para := range strings.Split(strings.TrimSuffix(strings.TrimSpace(cmd.Long), exitText), "\n\n") {
		if para = strings.TrimSpace(para); para == "" {
			continue
		}
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(roff(para) + "\n")
	}
	manFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	manFlags(&b, "GLOBAL OPTIONS", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	b.WriteString(".SH EXIT STATUS\n" +
		".TP\n.B 0\ndone or healthy\n.TP\n.B 1\na fault found, or the order refused\n" +
		".TP\n.B 2\nunknown: no answer from the control plane\n.TP\n.B 64\nusage\n")
	var also []string
	if cmd.HasParent() {
		also = append(also, cmd.Parent().CommandPath())
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" {
			also = append(also, sub.CommandPath())
		}
	}
	if len(also) > 0 {
		b.WriteString(".SH SEE ALSO\n")
		for i, s := range also {
			sep := ","
			if i == len(also)-1 {
				sep = ""
			}
			fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(strings.ReplaceAll(s, " ", "-")), sep)
		}
	}
	return b.String()
}

func manFlags(b *strings.Builder, title string, fs *pflag.FlagSet) {
	if !fs.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		text := "--" + f.Name
		if f.Shorthand != "" {
			text = "-" + f.Shorthand + ", " + text
		}
		if kind, _ := pflag.UnquoteUsage(f); kind != "" {
			text += " " + kind
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(text), roff(f.Usage))
	})
}

// roff escapes text for a manual page: backslashes and dashes, and lines that would begin with a request.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
