package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assay-gpu/assay/cmd/internal/tab"
	"github.com/assay-gpu/assay/coordinator/client"
)

// completeTime is how long a Tab may take. A control plane that is away, slow or says no offers nothing, in silence.
const completeTime = 800 * time.Millisecond

// An offer lists what a word of the command line may be, each as NAME or NAME, a tab and a few words on it.
type offer func(ctx context.Context, c *client.Client) ([]string, error)

// A place is one argument as a command's usage line has it: CASE|NODE, [HOSTLIST...].
type place struct {
	words []string
	more  bool // and any number of the same after it
}

// places reads a usage line.
func places(use string) (ps []place) {
	for _, f := range strings.Fields(use)[1:] {
		if strings.HasPrefix(f, "--") {
			break
		}
		f = strings.Trim(f, "[]")
		word := strings.TrimSuffix(strings.TrimSuffix(f, "..."), "…")
		ps = append(ps, place{strings.Split(word, "|"), word != f})
	}
	return ps
}

// inDirectory are the words of usage lines, and the flags, that the shell itself completes best.
var (
	inDirectory    = []string{"FILE", "DIR", "SCRIPT", "TRACE", "OLD", "NEW"}
	fileFlags      = []string{"batch", "ca", "cert", "chdir", "csv", "dir", "fetch", "file", "html", "key", "keys", "nodes-file", "socket"}
	noneOfOurs     = cobra.ShellCompDirectiveNoFileComp
	noneAndNoSpace = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
)

// complete has the shell complete a command's arguments, by the words of its usage line, and its flags.
func (a *app) complete(cmd *cobra.Command, s spec) {
	ps := places(s.use)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(ps) == 0 || len(args) >= len(ps) && !ps[len(ps)-1].more {
			return nil, noneOfOurs
		}
		p := ps[min(len(args), len(ps)-1)]
		switch w := p.words[0]; {
		case slices.Contains(inDirectory, w):
			return nil, cobra.ShellCompDirectiveDefault
		case w == "KEY=VALUE":
			return tab.Begin(s.keys, word), noneAndNoSpace
		}
		var found []string
		for _, w := range p.words {
			if o := s.offerOf(w); o != nil {
				found = append(found, a.offered(cmd.Context(), o)...)
			}
		}
		return tab.Rest(found, args, word), noneOfOurs
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, has := cmd.GetFlagCompletionFunc(f.Name); !has && !slices.Contains(fileFlags, f.Name) {
			cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
}

// offerOf is what a command offers for a word of its usage line, nil for what a person makes up.
func (s spec) offerOf(word string) offer {
	if o, own := s.offers[word]; own {
		return o
	}
	return offers[word]
}

// completeFlag has the shell complete the value of a flag, item by item where it takes a list.
func (a *app) completeFlag(cmd *cobra.Command, name string, o offer) {
	cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return tab.Rest(a.offered(cmd.Context(), o), nil, word), noneOfOurs
	})
}

// fixed offers what is known without asking.
func fixed(words ...string) offer {
	return func(context.Context, *client.Client) ([]string, error) { return words, nil }
}

// offered asks for an offer's words within the time that a person waits for the shell.
func (a *app) offered(ctx context.Context, o offer) []string {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	c, err := a.connect()
	if err != nil {
		return nil
	}
	defer c.Close()
	words, err := o(ctx, c)
	if err != nil {
		return nil
	}
	for i := range words {
		name, about, _ := strings.Cut(words[i], "\t")
		words[i] = clean(name)
		if about != "" {
			words[i] += "\t" + cut(about, 60)
		}
	}
	return words
}
