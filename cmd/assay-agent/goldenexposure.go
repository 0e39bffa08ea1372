package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/assay-gpu/assay/golden"
)

// printExposure tells of each unit how long it was under load, and how much of that at speed.
func printExposure(w io.Writer, r golden.Result) error {
	units := golden.Exposures(r)
	if len(units) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "UNIT\tUNDER LOAD\tAT SPEED\tSLOWEST CLOCK")
	for _, u := range units {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", u.Unit, seconds(u.Seconds), seconds(u.AtSpeed), clockText(u.Exposure, r.GPU))
	}
	return tw.Flush()
}

// exposureLine is the exposure of all units together.
func exposureLine(r golden.Result) string {
	var sum golden.Exposure
	for _, u := range golden.Exposures(r) {
		sum = sum.Plus(u.Exposure)
	}
	if sum == (golden.Exposure{}) {
		return ""
	}
	return fmt.Sprintf("%s under load, %s of it at speed; slowest clock %s", seconds(sum.Seconds), seconds(sum.AtSpeed), clockText(sum, r.GPU))
}

func clockText(e golden.Exposure, d golden.Device) string {
	if d.MaxMHz == 0 {
		return fmt.Sprintf("%.0f MHz, the highest not known", e.MHz)
	}
	return fmt.Sprintf("%.0f of %d MHz", e.MHz, d.MaxMHz)
}

// seconds writes a time with three digits that count: a simulated GPU's are microseconds.
func seconds(s float64) string {
	switch {
	case s == 0:
		return "0 s"
	case s < 1e-3:
		return fmt.Sprintf("%.3g µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.1f s", s)
}
