package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) eventsCmd() *cobra.Command {
	var ask client.EventsAsk
	var last int
	var hosts []string
	return a.command(spec{
		use: "events", short: "Print transitions and decisions of the whole fleet, oldest first", args: cobra.NoArgs, follow: true,
		long: `Prints the newest entries, and with --follow those to come. With -o json each entry is one line; its cursor can be
given to --after to go on from there.`,
		example: `  assay events
  assay events --follow
  assay events --follow --node 'gpu[001-008]' -o json`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVarP(&ask.Follow, "follow", "f", false, "go on with what happens, until interrupted")
			cmd.Flags().IntVar(&last, "last", 20, "how many of the newest entries to begin with")
			cmd.Flags().StringVar(&ask.After, "after", "", "begin after this cursor instead")
			cmd.Flags().StringArrayVar(&hosts, "node", nil, "only entries of these nodes (hostlist)")
			a.completeFlag(cmd, "node", offerNodes)
			cmd.MarkFlagsMutuallyExclusive("last", "after")
		},
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			list, only, err := nodeNames(hosts)
			if err != nil {
				return err
			}
			if last < 0 {
				return &usageError{fmt.Sprintf("--last %d: want a count", last), ""}
			}
			if ask.After != "" && !isCursor(ask.After) {
				return &usageError{fmt.Sprintf("--after %q: no cursor", ask.After), "a cursor is 16 hex digits, as each entry has with -o json"}
			}
			if ask.After == "" {
				ask.Last, ask.Nodes = &last, list
			}
			if !ask.Follow {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, a.timeout)
				defer cancel()
			}
			return a.printEvents(ctx, c, ask, only)
		},
	})
}

// isCursor says whether text has a cursor's form.
func isCursor(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == 16
}

// printEvents prints entries; while following it reconnects after the last one it saw, with full jitter.
func (a *app) printEvents(ctx context.Context, c *client.Client, ask client.EventsAsk, only []string) error {
	for try := 0; ; {
		var broke error
		for e, err := range c.Events(ctx, ask) {
			if err != nil {
				broke = err
				break
			}
			try = 0
			ask.After, ask.Last, ask.Nodes = e.Cursor, nil, ""
			if len(only) > 0 && !slices.Contains(only, e.Node) {
				continue
			}
			if err := a.printEvent(e); err != nil {
				return err
			}
		}
		var gone *client.UnreachableError
		if ctx.Err() != nil && ask.Follow {
			return nil // interrupted: that is how following ends
		}
		if !ask.Follow || broke != nil && !errors.As(broke, &gone) {
			return broke
		}
		if broke != nil && try == 0 && ask.Last != nil {
			return broke // it never answered at all
		}
		try++
		wait := rand.N(min(time.Second<<min(try, 5), 20*time.Second))
		fmt.Fprintf(a.err, "the stream ended; trying again in %s\n", wait.Round(time.Millisecond))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (a *app) printEvent(e wire.HistoryEntry) error {
	var line []byte
	var err error
	switch a.output {
	case "json":
		if line, err = json.Marshal(e); err == nil {
			line = append(line, '\n')
		}
	case "yaml":
		if line, err = json.Marshal(e); err == nil {
			if line, err = yaml.JSONToYAML(line); err == nil {
				line = append([]byte("---\n"), line...)
			}
		}
	default:
		line = []byte(a.historyLine(e, true) + "\n")
		if a.wide() {
			for _, d := range e.Detail {
				line = append(line, "    "+clean(d)+"\n"...)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("encode an entry: %w", err)
	}
	_, err = a.out.Write(line)
	return err
}
