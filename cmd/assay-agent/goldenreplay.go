package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/golden"
)

// replay takes what is to be run again from a report's text. nil: nothing was given.
func (f *goldenFlags) replay(c *cobra.Command, text string) (*golden.Replay, error) {
	if text == "" {
		return nil, nil
	}
	for _, name := range []string{"suite", "size", "seed", "kernel", "first", "for"} {
		if c.Flags().Changed(name) {
			return nil, fmt.Errorf("--replay says what is run: leave out --%s", name)
		}
	}
	p, err := golden.ParseReplay(text)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	f.suite, f.size, f.seed, f.kernels = "prolog", p.Size, p.Seed, []string{p.Kernel}
	return &p, nil
}

// sayReplay says whether what was wrong is wrong again. Exit status: 0 it is not, 1 it is, whatever the kernel's grade, 2 the
// SM was not tested.
func sayReplay(w io.Writer, p golden.Replay, results []golden.Result, asJSON bool) error {
	code := exitUnknown
	for _, r := range results {
		wrong, same, ran := p.Again(r)
		text := fmt.Sprintf("replay on %s: SM %d was not tested", r.GPU.UUID, p.SM)
		switch {
		case wrong && same:
			text = fmt.Sprintf("replay on %s: SM %d is wrong again, in the same word of the same step", r.GPU.UUID, p.SM)
		case wrong:
			text = fmt.Sprintf("replay on %s: SM %d is wrong again, in another place", r.GPU.UUID, p.SM)
		case ran:
			text = fmt.Sprintf("replay on %s: SM %d is right this time", r.GPU.UUID, p.SM)
		}
		switch {
		case wrong:
			code = exitFault
		case ran && code != exitFault:
			code = 0
		}
		if !asJSON {
			if _, err := fmt.Fprintln(w, text); err != nil {
				return err
			}
		}
	}
	if code != 0 {
		return &exitError{code: code}
	}
	return nil
}
