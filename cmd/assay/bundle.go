package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) rmaBundleCmd() *cobra.Command {
	var file string
	return a.command(spec{
		use: "bundle TICKET|NODE", short: "Write one archive for the vendor: README, findings, evidence, and how to see it again", args: cobra.ExactArgs(1),
		long: `It names this site's nodes, and the kernel log in it may name jobs and users: read it before it leaves the house. assay-agent
capture --redact writes one that names none.`,
		example: "  assay rma bundle R-7F3K\n  assay rma bundle R-7F3K --file /tmp/for-the-vendor.tar.gz",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&file, "file", "", "write it there (default TICKET.tar.gz here)")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			t, err := ticketOf(ctx, c, args[0])
			if err != nil {
				return err
			}
			k, err := c.Case(ctx, t.Case)
			if err != nil {
				return err
			}
			if file == "" {
				file = t.ID + ".tar.gz"
			}
			body, missing, err := bundle(ctx, c, t, k, a.now())
			if err != nil {
				return err
			}
			f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return &usageError{err.Error(), "name another file with --file"}
			}
			if _, err := f.Write(body); err != nil {
				f.Close()
				return err
			}
			for _, name := range missing {
				fmt.Fprintf(a.err, "%s is not in it: it is on %s alone\n", clean(name), clean(t.Node))
			}
			fmt.Fprintln(a.out, file)
			return f.Close()
		},
	})
}

// bundle makes the archive, and names the evidence that no control host has.
func bundle(ctx context.Context, c *client.Client, t rma.Ticket, k wire.Case, now time.Time) (body []byte, missing []string, err error) {
	files := map[string][]byte{}
	var held []string
	for _, name := range sortedKeys(k.Evidence) {
		if name != path.Base(name) || strings.HasPrefix(name, ".") {
			continue
		}
		var b bytes.Buffer
		err := c.Evidence(ctx, k.Evidence[name], &b)
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status() == http.StatusNotFound {
			missing = append(missing, name)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		files["evidence/"+name] = b.Bytes()
		held = append(held, name)
	}
	for name, v := range map[string]any{"ticket.json": t, "case.json": k, "findings.json": k.Findings} {
		if files[name], err = json.MarshalIndent(v, "", "  "); err != nil {
			return nil, nil, err
		}
	}
	files["README.txt"] = []byte(vendorReadme(t, k, held))
	files["reproduce.sh"] = []byte(reproducer(t, k))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range sortedFiles(files) {
		mode := int64(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		if err := w.WriteHeader(&tar.Header{Name: t.ID + "/" + name, Mode: mode, Size: int64(len(files[name])), ModTime: now}); err != nil {
			return nil, nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, nil, err
		}
	}
	err = errors.Join(w.Close(), z.Close())
	return b.Bytes(), missing, err
}

func vendorReadme(t rma.Ticket, k wire.Case, held []string) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("Return of %s", cmp.Or(t.Product, "a part"))
	p("")
	p("Serial:        %s", cmp.Or(t.Serial, "none; see UUID"))
	p("UUID:          %s", t.UUID)
	p("Host and slot: %s, %s", t.Node, cmp.Or(t.Slot, "the node itself"))
	p("Our ticket:    %s, case %s", t.ID, t.Case)
	p("Your number:   %s", t.Vendor)
	p("Warranty to:   %s", day(t.Warranty))
	p("Fault:         %s", t.Cause)
	p("First seen:    %s", k.Opened.UTC().Format(time.RFC3339))
	p("Tried:         %s", cmp.Or(strings.Join(k.Attempts, ", "), "nothing"))
	if t.Blame != "" {
		p("Board or slot: %s", t.Blame)
	}
	p("")
	p("What was found, each by the check named; findings.json has the whole:")
	for _, f := range k.Findings {
		p("  %s  %s: %s (seen %d times)", f.At.UTC().Format(time.RFC3339), f.Check, f.Reason, max(f.Count, 1))
	}
	p("")
	p("Evidence, as it was before anything was reset:")
	for _, name := range held {
		p("  evidence/%s", name)
	}
	p("")
	p("reproduce.sh says how to see it again, on the board and from the evidence.")
	return b.String()
}

// reproducer are the commands that show the fault again.
func reproducer(t rma.Ticket, k wire.Case) string {
	suite := cmp.Or(k.Level.String(), "standard")
	return fmt.Sprintf(`#!/bin/sh
# How to see the fault of %s (%s) again. assay-agent is one program; it needs the NVIDIA driver for the second step only.
set -eu
here=$(dirname "$0")

# 1. Judge the evidence again, on any machine. It exits 1 and names the fault.
assay-agent check --from "$here/evidence" --suite quick || echo "exit status $?"

# 2. With the board in a machine: the screen that it failed.
echo "on the machine with the board: assay-agent check --suite %s"
`, cmp.Or(t.Serial, t.UUID, t.Part), t.Cause, suite)
}

func sortedFiles(files map[string][]byte) []string {
	names := map[string]string{}
	for n := range files {
		names[n] = n
	}
	return sortedKeys(names)
}
