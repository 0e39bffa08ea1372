package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/golden/corpus"
)

func newGoldenCorpus() *cobra.Command {
	c := &cobra.Command{
		Use: "corpus", Short: "Random programs with known end states: a fuzzer for GPUs", Args: usageArgs(cobra.NoArgs),
		Example: "  assay-agent golden corpus generate --seed 7 --programs 64 -o /var/lib/assay/corpora/7\n  assay-agent golden corpus run /var/lib/assay/corpora/7\n  assay-agent golden corpus list /var/lib/assay/corpora",
	}
	c.AddCommand(newCorpusGenerate(), newCorpusList(), newCorpusShow(), newCorpusVerify(), newCorpusRun())
	return c
}

func newCorpusGenerate() *cobra.Command {
	var seed uint64
	var programs int
	var dir, keep, tools string
	var asJSON bool
	c := &cobra.Command{
		Use: "generate", Short: "Draw programs, find their goldens, and keep those that show something new", Args: usageArgs(cobra.NoArgs),
		Long: "Generate draws random PTX programs, runs each on the PTX machine under 20 hostile schedules, refuses those whose end state\n" +
			"depends on the schedule or in which an upset of one bit may fade, cuts the rest down to what is new in them, and packs them.\n" +
			"New is a pair of instructions with the kind of their operands: of the machine code where ptxas 11.8 and 12.4 are at hand\n" +
			"(make sass-gate unpacks them), else of the PTX. The same seed with the same tools gives the same bytes.\n" +
			"Programs that once caught a device are always in. Interrupted, it keeps what it has admitted.",
		Example: "  assay-agent golden corpus generate --seed 7 --programs 64 -o corpora/7",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := generateArgs(programs, dir); err != nil {
				return usage(err)
			}
			if keep == "" {
				keep = corpus.KeptBeside(dir)
			}
			o := corpus.Options{Seed: seed, Programs: programs}
			var err error
			if o.Keep, err = corpus.ReadKept(keep); err != nil {
				return usage(err)
			}
			if tools != "none" {
				if o.Tools, err = corpus.FindTools(tools); err != nil {
					return usage(err)
				}
			}
			if o.Tools == nil {
				fmt.Fprintln(c.ErrOrStderr(), "no ptxas at hand: pairs are of the PTX, and no machine code is looked at")
			}
			return generateCorpus(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), o, dir, asJSON)
		},
	}
	c.Flags().Uint64Var(&seed, "seed", 0, "`SEED` of everything that is drawn")
	c.Flags().IntVar(&programs, "programs", 64, "how many `PROGRAMS` to admit, 1 to 4096")
	c.Flags().StringVarP(&dir, "output", "o", "", "write the corpus into `DIR`")
	c.Flags().StringVar(&keep, "keep", "", "`DIR` of the programs that are kept for ever (default: kept, beside the corpus)")
	c.Flags().StringVar(&tools, "cuda-tools", "", "`DIR` with 11.8/bin and 12.4/bin of ptxas and cuobjdump, or none (default: the user's cache, if there)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the manifest")
	for _, name := range []string{"output", "keep", "cuda-tools"} {
		_ = c.MarkFlagDirname(name) // the flags are defined above
	}
	return c
}

func generateArgs(programs int, dir string) error {
	var faults []error
	if programs < 1 || programs > 4096 {
		faults = append(faults, fmt.Errorf("--programs %d: want 1 to 4096", programs))
	}
	if dir == "" {
		faults = append(faults, errors.New("-o is missing: where should the corpus go?"))
	}
	return errors.Join(faults...)
}

func generateCorpus(ctx context.Context, stdout, stderr io.Writer, o corpus.Options, dir string, asJSON bool) error {
	started := time.Now()
	o.Progress = func(admitted, candidates int) {
		left := "?"
		if admitted > 0 {
			left = (time.Since(started) / time.Duration(admitted) * time.Duration(o.Programs-admitted)).Round(time.Second).String()
		}
		fmt.Fprintf(stderr, "%d of %d programs, %d candidates, %s, about %s left\n", admitted, o.Programs, candidates, time.Since(started).Round(time.Second), left)
	}
	c, err := corpus.Generate(ctx, o)
	if err != nil {
		return err
	}
	if old, err := corpus.Load(dir); err == nil {
		// What was found to catch devices stays, whoever writes here next.
		for _, p := range old.Manifest.Programs {
			if _, have := c.Text(p.ID); len(p.Caught) > 0 && !have {
				return usage(fmt.Errorf("%s holds %s, which once caught a device and is not in %s: keep it there first", dir, p.ID, corpus.KeptBeside(dir)))
			}
		}
	}
	if err := c.Save(dir); err != nil {
		return err
	}
	if asJSON {
		enc := json.NewEncoder(stdout)
		if err := enc.Encode(c.Manifest); err != nil {
			return err
		}
	} else if err := printCorpus(stdout, dir, c); err != nil {
		return err
	}
	if c.Manifest.Stopped != "" {
		return &exitError{exitUnknown, fmt.Errorf("fewer programs than asked for: %s", c.Manifest.Stopped)}
	}
	return nil
}

func printCorpus(w io.Writer, dir string, c *corpus.Corpus) error {
	m := c.Manifest
	refused := 0
	for _, n := range m.Refused {
		refused += n
	}
	_, err := fmt.Fprintf(w, "%s: version %s, seed %d, %d programs of %d candidates, %d pairs of %s, %s\n", dir, c.Digest[:12], m.Seed, len(m.Programs), m.Candidates, m.Pairs.Count, m.Pairs.Of, gateText(m))
	return err
}

func gateText(m corpus.Manifest) string {
	if len(m.Gate) == 0 {
		return "machine code not looked at"
	}
	return fmt.Sprintf("the same opcodes in %d builds", len(m.Gate))
}

// corporaIn gives the corpora that a path names: itself, or those in it.
func corporaIn(dirs []string) ([]string, error) {
	var out []string
	for _, dir := range dirs {
		found, err := corpus.In(dir)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no corpus, and none in it", dir)
		}
		out = append(out, found...)
	}
	return out, nil
}

func newCorpusList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list DIR…", Short: "List corpora: version, seed, what each covers", Args: usageArgs(cobra.MinimumNArgs(1)),
		Example: "  assay-agent golden corpus list /var/lib/assay/corpora",
		RunE: func(c *cobra.Command, args []string) error {
			dirs, err := corporaIn(args)
			if err != nil {
				return usage(err)
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			enc := json.NewEncoder(c.OutOrStdout())
			if !asJSON {
				fmt.Fprintln(tw, "CORPUS\tVERSION\tSEED\tPROGRAMS\tCAUGHT\tPAIRS\tOF\tGATE")
			}
			for _, dir := range dirs {
				k, err := corpus.Load(dir)
				if err != nil {
					return usage(err)
				}
				m := k.Manifest
				caught := 0
				for _, p := range m.Programs {
					if len(p.Caught) > 0 {
						caught++
					}
				}
				if asJSON {
					err := enc.Encode(map[string]any{"dir": dir, "version": k.Digest, "seed": m.Seed, "generator": m.Generator, "programs": len(m.Programs), "caught": caught, "pairs": m.Pairs, "gate": len(m.Gate)})
					if err != nil {
						return err
					}
					continue
				}
				fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%d builds\n", dir, k.Digest[:12], m.Seed, len(m.Programs), caught, m.Pairs.Count, m.Pairs.Of, len(m.Gate))
			}
			return tw.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one corpus a line, as JSON")
	return c
}

func newCorpusShow() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show DIR [PROGRAM]", Short: "Show a corpus's programs, or the PTX of one", Args: usageArgs(cobra.RangeArgs(1, 2)),
		Example: "  assay-agent golden corpus show corpora/7\n  assay-agent golden corpus show corpora/7 c70_3f",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := corpus.Load(args[0])
			if err != nil {
				return usage(err)
			}
			if len(args) == 2 {
				return showProgram(c.OutOrStdout(), k, args[1], asJSON)
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(k.Manifest)
			}
			m := k.Manifest
			if err := printCorpus(c.OutOrStdout(), args[0], k); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%d threads, %d steps, %d seeds; %d schedules; refused: %s\n", m.Threads, m.Steps, m.Seeds, m.Schedules, refusedText(m.Refused))
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "PROGRAM\tFROM\tOPS\tNEW PAIRS\tUPSETS SEEN\tCAUGHT")
			for _, p := range m.Programs {
				fmt.Fprintf(tw, "%s\tsm_%d\t%d\t%d\t%.1f %%\t%d\n", p.ID, p.Tier, p.Ops, p.New, 100*p.Reached, len(p.Caught))
			}
			return tw.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the manifest, or the program's part of it")
	return c
}

func refusedText(m map[string]int) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s %d", k, m[k]))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

func showProgram(w io.Writer, k *corpus.Corpus, name string, asJSON bool) error {
	p, err := k.Lookup(name)
	if err != nil {
		return usage(err)
	}
	if asJSON {
		return json.NewEncoder(w).Encode(p)
	}
	text, _ := k.Text(p.ID)
	_, err = io.WriteString(w, text)
	return err
}

func newCorpusVerify() *cobra.Command {
	var schedules int
	var asJSON bool
	c := &cobra.Command{
		Use: "verify DIR", Short: "Hold a corpus to its digests and its grammar, and find its goldens anew", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "Verify checks every file and program against its digest and the grammar, and runs each program on the PTX machine again.\n" +
			"Exit status: 0 all is as the corpus says, 1 something is not, 2 interrupted.",
		Example: "  assay-agent golden corpus verify corpora/7 --schedules 20",
		RunE: func(c *cobra.Command, args []string) error {
			if schedules < 0 || schedules > 1000 {
				return usage(fmt.Errorf("--schedules %d: want 0 to 1000", schedules))
			}
			k, err := corpus.Load(args[0])
			if err != nil {
				return &exitError{exitFault, err}
			}
			return verifyCorpus(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), k, schedules, asJSON)
		},
	}
	c.Flags().IntVar(&schedules, "schedules", 4, "hostile `SCHEDULES` to run each program under")
	c.Flags().BoolVar(&asJSON, "json", false, "print one fault a line, as JSON")
	return c
}

func verifyCorpus(ctx context.Context, stdout, stderr io.Writer, k *corpus.Corpus, schedules int, asJSON bool) error {
	n, started := len(k.Manifest.Programs), time.Now()
	told := started
	faults, err := k.Verify(ctx, schedules, func(done int) {
		if time.Since(told) > 5*time.Second {
			told = time.Now()
			fmt.Fprintf(stderr, "%d of %d programs, about %s left\n", done, n, (time.Since(started) / time.Duration(done) * time.Duration(n-done)).Round(time.Second))
		}
	})
	enc := json.NewEncoder(stdout)
	for _, f := range faults {
		if asJSON {
			if err := enc.Encode(f); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(stdout, "%s: %s\n", f.ID, f.Why)
	}
	switch {
	case len(faults) > 0:
		return &exitError{code: exitFault}
	case err != nil:
		return &exitError{exitUnknown, err}
	}
	if !asJSON {
		_, err = fmt.Fprintf(stdout, "%d programs, %d goldens each: all as the corpus says\n", n, k.Manifest.Seeds)
	}
	return err
}
