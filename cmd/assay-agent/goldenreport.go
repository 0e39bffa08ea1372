package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/report"
)

func newGoldenReport() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "report FILE|-", Short: "Write what a run has found as a page for people, with a picture", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "Report reads what golden run --json printed and says of each GPU what was wrong, where, how often, on which operands, and the\n" +
			"command that runs the same again. With -o it writes report.md and, of each GPU, a map of its SMs as SVG and as PNG.\n" +
			"Exit status: 0 every SM of every GPU verified, 1 a wrong result, of whatever grade, 2 something was not tested.",
		Example: "  assay-agent golden run --json >result.jsonl\n  assay-agent golden report result.jsonl -o report",
		RunE: func(c *cobra.Command, args []string) error {
			text, err := readInput(c.InOrStdin(), args[0], maxGoldenText)
			if err != nil {
				return usage(err)
			}
			rs, err := readResults(text)
			if err != nil {
				return usage(fmt.Errorf("%s: %w", args[0], err))
			}
			if dir == "" {
				err = printReport(c.OutOrStdout(), rs)
			} else {
				err = writeReport(c.OutOrStdout(), dir, rs)
			}
			if err != nil {
				return err
			}
			return reportStatus(rs)
		},
	}
	c.Flags().StringVarP(&dir, "output", "o", "", "write report.md and the pictures into `DIR`")
	return c
}

func readResults(text string) ([]golden.Result, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	var rs []golden.Result
	for {
		var r golden.Result
		err := dec.Decode(&r)
		if errors.Is(err, io.EOF) {
			return rs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("result %d: %w", len(rs)+1, err)
		}
		rs = append(rs, r)
	}
}

func printReport(w io.Writer, rs []golden.Result) error {
	for _, r := range rs {
		if _, err := io.WriteString(w, report.Text(r, "")); err != nil {
			return err
		}
	}
	return nil
}

func writeReport(w io.Writer, dir string, rs []golden.Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := report.Files(rs, "")
	if err != nil {
		return err
	}
	at := ""
	for _, f := range files { // the page comes last, when its pictures are there
		at = filepath.Join(dir, f.Name)
		if err := atomicfile.Write(at, f.Data, 0o644); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "%s: %d GPUs\n", at, len(rs))
	return err
}

func reportStatus(rs []golden.Result) error {
	code := 0
	for _, r := range rs {
		switch golden.Judge(r, golden.Grades{Simulated: r.GPU.Simulated}).Outcome {
		case golden.Wrong:
			return &exitError{code: exitFault}
		case golden.NotTested:
			code = exitUnknown
		}
	}
	if code != 0 || len(rs) == 0 {
		return &exitError{code: exitUnknown}
	}
	return nil
}
