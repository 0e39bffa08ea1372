package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/corpus"
)

// corporaDir is where an installed agent's corpora lie, and in its folder kept the programs that once caught a device.
const corporaDir = "/var/lib/assay/corpora"

// corpusFlags say which programs a run has besides its suite's kernels.
type corpusFlags struct {
	corpora  string
	day      string
	programs []string

	list *corpus.Collection
}

func (f *corpusFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.corpora, "corpora", "", "after the kernels run the kept programs of `DIR` and one corpus in it, each day the next; or the corpus in DIR")
	c.Flags().StringVar(&f.day, "day", "", "the corpus of this `DAY`, as 2026-03-01 (default: today)")
	c.Flags().StringSliceVar(&f.programs, "program", nil, "only these `PROGRAMS` of the corpus")
	_ = c.MarkFlagDirname("corpora") // it is defined above
}

// collection loads what the flags name; nil: nothing.
func (f *corpusFlags) collection() (*corpus.Collection, error) {
	if f.corpora == "" {
		return nil, nil
	}
	if f.day == "" {
		f.day = time.Now().UTC().Format(time.DateOnly)
	}
	day, err := time.Parse(time.DateOnly, f.day)
	if err != nil {
		return nil, fmt.Errorf("--day %q: want a day, as 2026-03-01", f.day)
	}
	if f.list, err = corpus.Today(f.corpora, day); err != nil {
		return nil, err
	}
	return f.list, f.list.Only(f.programs)
}

// args hand the same programs on to a child.
func (f *corpusFlags) args() []string {
	if f.list == nil {
		return nil
	}
	dir, err := filepath.Abs(f.corpora)
	if err != nil {
		dir = f.corpora
	}
	args := []string{"--corpora", dir, "--day", f.day}
	if len(f.programs) > 0 {
		args = append(args, "--program", strings.Join(f.programs, ","))
	}
	return args
}

// keep writes every program that has found something into the folder of those that are kept.
func (f *corpusFlags) keep(stderr io.Writer, results []golden.Result) error {
	if f.list == nil {
		return nil
	}
	var errs []error
	for _, r := range results {
		kept, err := f.list.KeepCatches(f.corpora, r, time.Now())
		for _, id := range kept {
			fmt.Fprintf(stderr, "program %s has caught GPU %s: it is kept in %s\n", id, r.GPU.UUID, corpus.KeptIn(f.corpora))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func newCorpusRun() *cobra.Command {
	f := goldenFlags{suite: golden.CorpusSuite().Name}
	var only []string
	var asJSON, simulated bool
	c := &cobra.Command{
		Use: "run [DIR]", Short: "Run a corpus on every SM of every GPU and compare every word", Args: usageArgs(cobra.MaximumNArgs(1)),
		Long: "Run has each program of a corpus run on every SM, as golden run has each kernel. DIR is a corpus, or a folder of corpora, of\n" +
			"which each day another is run (default: " + corporaDir + "). Programs that once caught a device come first.\n" +
			"One that catches a device is kept for ever, in the folder kept beside the corpora. Exit status: as golden run.",
		Example: "  assay-agent golden corpus run\n  assay-agent golden corpus run corpora/7 --gpu 0 --program c70_3f9a0c1d2e4b --seed 2",
		RunE: func(c *cobra.Command, args []string) error {
			f.own.corpora = corporaDir
			if len(args) == 1 {
				f.own.corpora = args[0]
			}
			o, err := f.options()
			if err != nil {
				return err
			}
			if f.sim != "" {
				if o.Library, err = placeCUDA(f.sim, c.Flags().Changed("library"), o.Library); err != nil {
					return err
				}
			}
			return goldenRun(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), &f, o, only, nil, asJSON, simulatedGrades(simulated))
		},
	}
	c.Flags().StringVar(&f.library, "library", "libcuda.so.1", "CUDA driver `LIBRARY` to load")
	c.Flags().IntVar(&f.seed, "seed", -1, "`SEED`, taken modulo those that the corpus has (default: at random)")
	c.Flags().StringVar(&f.own.day, "day", "", "the corpus of this `DAY`, as 2026-03-01 (default: today)")
	c.Flags().StringSliceVar(&f.own.programs, "program", nil, "only these `PROGRAMS`")
	c.Flags().DurationVar(&f.within, "within", 0, "`TIME` the run may take (default: 30m)")
	c.Flags().StringVar(&f.sim, "sim", "", "run on the simulated node in `DIR`")
	c.Flags().StringSliceVar(&only, "gpu", nil, "only these GPUs: `UUIDS` or indices")
	c.Flags().BoolVar(&asJSON, "json", false, "print one result a GPU, as JSON lines")
	c.Flags().BoolVar(&simulated, "trust-simulated", false, "let programs count as of grade prod on simulated GPUs")
	return c
}
